from __future__ import annotations

import builtins
import functools
import io
import json
import linecache
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.errors import UsageError
from hostler.fleet import function
from hostler.fleet.function import Packed, name_of, pack

servers.library("cloudpickle")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))


def cell(source: str, number: int = 3, **known: Any) -> dict[str, Any]:
    """What a cell of a notebook leaves, compiled as IPython does."""
    file = f"<ipython-input-{number}-0123456789ab>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    made: dict[str, Any] = {"__name__": "__main__", **known}
    exec(compile(source, file, "exec"), made)
    return made


def opened(packed: Packed) -> tuple[dict[str, Any], bytes]:
    with zipfile.ZipFile(io.BytesIO(packed.path.read_bytes())) as found:
        return json.loads(found.read("about.json")), found.read("function.pickle")


def refused(work: Callable[..., Any], root: Path) -> str:
    with pytest.raises(UsageError) as error:
        pack(work, root)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_packed_cell_brings_its_source_under_jupyters_name(tmp_path: Path) -> None:
    source = "def train(lr):\n    return lr\n"
    about, data = opened(pack(cell(source, 7)["train"], tmp_path))
    assert about["cells"] == {"Cell In[7]": source}
    assert about["python"] == list(sys.version_info[:2])
    assert b"Cell In[7]" in data and b"ipython-input" not in data


def test_packed_function_brings_cells_of_what_it_calls_alone(tmp_path: Path) -> None:
    helper = cell("def helper(x):\n    return x\n", 1)["helper"]
    cell("def other():\n    pass\n", 2)
    train = cell("def train(lr):\n    return helper(lr)\n", 3, helper=helper)["train"]
    about, _ = opened(pack(train, tmp_path))
    assert sorted(about["cells"]) == ["Cell In[1]", "Cell In[3]"]


def test_equal_functions_have_equal_hashes_and_others_do_not(tmp_path: Path) -> None:
    one, same = (cell("def train(lr):\n    return lr\n")["train"] for _ in range(2))
    other = cell("def train(lr):\n    return -lr\n")["train"]
    assert pack(one, tmp_path).sha == pack(same, tmp_path).sha != pack(other, tmp_path).sha


def test_cell_that_is_run_again_is_the_same_function(tmp_path: Path) -> None:
    source = "def train(lr):\n    return lr\n"
    first = pack(cell(source, 3)["train"], tmp_path)
    assert pack(cell(f"{source}train(5)\n", 12)["train"], tmp_path) == first
    assert pack(cell(source.replace("lr\n", "-lr\n"), 12)["train"], tmp_path) != first
    first.path.write_bytes(b"damaged")
    again = pack(cell(source, 13)["train"], tmp_path)
    assert opened(again)[0]["cells"] == {"Cell In[13]": source}


def test_packed_zip_holds_cloudpickle_for_machines_without_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(pack(lambda lr: lr, tmp_path).path) as found:
        assert "cloudpickle/cloudpickle.py" in found.namelist()


def test_function_that_cannot_be_pickled_names_the_object(tmp_path: Path) -> None:
    db = sqlite3.connect(":memory:")
    train = cell("def train(lr):\n    return db.execute('select 1')\n", db=db)["train"]
    expected = "train uses `db`, a sqlite3.Connection, which cannot be pickled"
    assert refused(train, tmp_path).startswith(expected)


def test_refusal_names_the_object_behind_closures_and_helpers(tmp_path: Path) -> None:
    def closure() -> Callable[[int], Any]:
        db = sqlite3.connect(":memory:")
        return lambda lr: db

    assert refused(closure(), tmp_path).startswith("lambda uses `db`, a sqlite3.Connection, which")
    bound = functools.partial(lambda lr, db: lr, db=sqlite3.connect(":memory:"))
    assert refused(bound, tmp_path).startswith("lambda uses `db`, a sqlite3.Connection, which")
    helper = cell("def helper():\n    return db\n", 1, db=sqlite3.connect(":memory:"))["helper"]
    train = cell("def train(lr):\n    return helper()\n", helper=helper)["train"]
    assert refused(train, tmp_path).startswith("train uses `helper`, which uses `db`, a sqlite3.Connection")
    held = cell("def train(lr):\n    return config\n", config={"db": sqlite3.connect(":memory:")})["train"]
    assert "`config`, a dict, which cannot be pickled (cannot pickle 'sqlite3.Con" in refused(held, tmp_path)


def test_missing_cloudpickle_is_one_line_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == "cloudpickle":
            raise ModuleNotFoundError(name=name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert "pip install 'hostler[notebooks]'" in refused(lambda lr: lr, tmp_path)


def test_secret_in_a_packed_function_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cret-of-twenty-letters")
    token = "s3cret-of-twenty-letters"
    with pytest.raises(UsageError, match="train, or what it uses, holds the value of MY_TOKEN"):
        pack(cell("def train(lr):\n    return token\n", token=token)["train"], tmp_path, ("MY_TOKEN",))


def test_folders_of_the_project_stay_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "book").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "book"), "/usr/lib", *sys.path])
    assert opened(pack(lambda lr: lr, tmp_path))[0]["path"] == ["book"]


def test_functions_without_a_name_get_one() -> None:
    assert name_of(lambda lr: lr) == "lambda"
    assert name_of(functools.partial(refused, 1)) == "refused"
    assert function._article("sqlite3.Connection") == "a sqlite3.Connection"
    assert function._article("_io.TextIOWrapper") == "an _io.TextIOWrapper"
