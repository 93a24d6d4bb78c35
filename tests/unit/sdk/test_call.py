from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import hostler
import servers
from hostler.fleet.function import Packed, pack
from hostler.sdk import call

servers.library("cloudpickle")


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packed:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    made: dict[str, Any] = {"__name__": "__main__"}
    exec("def train(lr):\n    print('was called')\n    return lr * 2\n", made)
    return pack(made["train"], tmp_path)


def called(packed: Packed, folder: Path, sha: str) -> subprocess.CompletedProcess[str]:
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / "params.json").write_text(json.dumps({"lr": 2}))
    environ = {**os.environ, "HOSTLER_DIR": str(folder / "run"), "HOSTLER_FUNCTION": sha}
    environ["PYTHONPATH"] = str(Path(hostler.__file__).parents[1])
    words = [sys.executable, "-m", "hostler.sdk.call", f"{packed.path}:train", "score"]
    return subprocess.run(words, env=environ, capture_output=True, text=True, cwd=folder)


def test_packed_function_of_the_specs_hash_is_called(packed: Packed, tmp_path: Path) -> None:
    done = called(packed, tmp_path, packed.sha)
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[-1]) == {"score": 4.0}, done.stderr


def test_packed_function_of_another_hash_is_not_loaded(packed: Packed, tmp_path: Path) -> None:
    for sha in ("0" * 64, ""):
        done = called(packed, tmp_path, sha)
        assert done.returncode == 1 and "was called" not in done.stdout
        assert done.stderr.startswith("hostler: the packed function train is not the one that was submitted")
        assert "Traceback" not in done.stderr


def test_pickle_of_another_python_is_refused_in_one_line(packed: Packed, tmp_path: Path) -> None:
    import hashlib

    other = tmp_path / "other.zip"
    with zipfile.ZipFile(packed.path) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "about.json":
                data = json.dumps({**json.loads(data), "python": [3, 7]}).encode()
            new.writestr(name, data)
    sha = hashlib.sha256(other.read_bytes()).hexdigest()
    done = called(Packed("train", sha, other), tmp_path, sha)
    here = ".".join(map(str, sys.version_info[:2]))
    assert done.returncode == 1
    assert (
        done.stderr.splitlines()[0] == f"hostler: train was packed by Python 3.7, and this is Python {here}"
    )


@pytest.mark.parametrize("result", [10**400, [1, 2], {"a": "text", "b": 10**400}, True, None])
def test_result_that_is_not_a_number_is_not_logged(result: Any) -> None:
    assert call._metrics(result, "score") == {}


def taken(first: int, /, second: int = 2, *more: int, key: int = 0, **others: int) -> list[Any]:
    return [first, second, more, key, others]


@pytest.mark.parametrize(
    ("params", "result"),
    [
        ({"first": 1}, [1, 2, (), 0, {}]),
        ({"first": 1, "second": 3, "more": [4, 5], "key": 6}, [1, 3, (4, 5), 6, {}]),
        ({"first": 1, "x": 7}, [1, 2, (), 0, {"x": 7}]),
        ({"first": 1, "more": [3]}, [1, 2, (3,), 0, {}]),
        ({"first": 1, "more": "3"}, [1, 2, (), 0, {"more": "3"}]),
    ],
)
def test_parameters_reach_a_function_by_name_and_place(params: dict[str, Any], result: list[Any]) -> None:
    assert call._called(taken, params) == result and not call._refusal(taken, params)


def test_parameters_that_a_function_cannot_take_are_said() -> None:
    assert "missing a required argument: 'first'" in call._refusal(taken, {"more": [1]})
    assert "unexpected keyword argument 'x'" in call._refusal(lambda lr: lr, {"lr": 1, "x": 2})


def test_function_of_an_installed_module_is_found_by_its_name() -> None:
    assert call._function("statistics:mean")([1, 2, 3]) == 2


def test_array_is_not_logged_and_its_scalar_is() -> None:
    numpy = servers.library("numpy")
    assert call._metrics({"all": numpy.arange(3), "one": numpy.float32(0.5)}, "score") == {"one": 0.5}
