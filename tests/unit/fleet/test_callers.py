"""Programs that only call functions elsewhere are told from code of the calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.fleet import callers
from hostler.fleet.snapshot.snapshot import tree_of

CALLS = (
    "import hostler\nfrom train import train\nwith hostler.Executor() as pool:\n    pool.map(train, [1])\n"
)


@pytest.mark.parametrize(
    ("files", "left"),
    [
        (
            {"go.py": CALLS, "more/again.py": CALLS, "train.py": "def train(x): ..."},
            ["go.py", "more/again.py"],
        ),
        ({"go.py": CALLS, "train.py": "import helpers.go"}, []),
        ({"go.py": CALLS, "train.py": "from helpers import (\n    a,\n    go,\n)"}, []),
        ({"go.py": CALLS, "train.py": "subprocess.run(['python', 'go.py'])"}, []),
        ({"go.py": CALLS, "train.py": "import going\n# go, later"}, ["go.py"]),
        ({"train.py": CALLS}, []),
        ({"go.py": CALLS, "train.py": "", ".gitignore": "go.py"}, []),
    ],
    ids=["two", "imported", "imported-in-lines", "started", "another-name", "own", "ignored"],
)
def test_program_of_calls_alone_is_not_code(tmp_path: Path, files: dict[str, str], left: list[str]) -> None:
    write(tmp_path, files)
    assert callers.programs(tmp_path, "train.py") == left


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("name", ["pkg/__init__.py", "pkg/__main__.py", "__main__.py"])
def test_file_that_makes_a_package_is_always_code(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"pkg/net.py": "", "train.py": "", name: CALLS})
    assert callers.programs(tmp_path, "train.py") == []


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("import hostler as h\nh.Executor()", True),
        ("from hostler import Executor as Pool\nwith Pool() as pool: ...", True),
        ("from hostler import *\nExecutor()", True),
        ("from hostler.executor import Executor\nif __name__ == '__main__':\n    Executor()", True),
        ("import hostler.executor\ndef main():\n    hostler.executor.Executor()\nmain()", True),
        ("import hostler, sys\ndef main(): hostler.Executor()\nsys.exit(main())", True),
        ("import hostler\nThreadPoolExecutor()", False),
        (
            "import hostler\nfrom concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor(4)",
            False,
        ),
        ("import hostler\nfrom concurrent.futures import Executor\nExecutor()", False),
        ("import hostler\n# hostler.Executor()", False),
        ("import hostler\ndef fan_out(f):\n    return hostler.Executor().map(f)", False),
        ("import hostler\nclass Net:\n    def go(self): hostler.Executor()\nNET = Net", False),
        ("import hostler\nhostler.Executor(", False),
    ],
)
def test_program_is_told_by_what_it_does_when_started(tmp_path: Path, text: str, calls: bool) -> None:
    write(tmp_path, {"go.py": text, "train.py": ""})
    assert callers.programs(tmp_path, "train.py") == (["go.py"] if calls else [])


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("conf/model.yaml", "_target_: plug.Net\n", []),
        ("conf/model.yaml", "plugins:\n- plug\n", []),
        ("pyproject.toml", '[project.scripts]\nserve = "helpers.plug:main"\n', []),
        ("setup.cfg", "console_scripts =\n  serve = plug:main\n", []),
        ("start.sh", "python plug.py\n", []),
        ("Makefile", "all:\n\tpython -m plug\n", []),
        ("conf/model.yaml", "_target_: plugs.Net\n", ["plug.py"]),
        ("conf/model.yaml", "_target_: unplug.Net\n", ["plug.py"]),
        ("README.md", "Then start plug.py.\n", ["plug.py"]),
        ("log.txt", "plug.py, line 3\n", ["plug.py"]),
        ("train2.py", "make('plug.Net')", []),
        ("train2.py", "run(f'plug.py --lr {lr}')", []),
        ("train2.py", "from helpers import net, \\\n    plug", []),
        ("train2.py", "try: import plug\nexcept ImportError: ...", []),
        ("train2.py", "print('plug it in')", ["plug.py"]),
    ],
)
def test_program_that_another_file_names_is_code(
    tmp_path: Path, name: str, text: str, left: list[str]
) -> None:
    write(tmp_path, {"plug.py": CALLS, "train.py": "", name: text})
    assert callers.programs(tmp_path, "train.py", leave=["log.txt", ""]) == left


def test_data_of_many_or_large_files_is_not_searched_for_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MANY", 2)
    monkeypatch.setattr(callers, "LARGE", 1000)
    labels = {f"labels/{number}.txt": "plug" for number in range(3)}
    write(tmp_path, {"plug.py": CALLS, "train.py": "", "weights": "plug " * 201, **labels})
    assert callers.programs(tmp_path, "train.py") == ["plug.py"]


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"train.py": "import_module(f'plugins.{name}')"}, []),
        ({"train.py": "from plugins import load"}, []),
        ({"train.py": "", "plugins/__init__.py": "from plugins import base"}, []),
        ({"train.py": "import lib", "lib/__init__.py": "", "lib/plugins/__init__.py": ""}, ["plugins/go.py"]),
        ({"train.py": "import math"}, ["plugins/go.py"]),
    ],
    ids=["dynamic", "imported", "of-its-own", "another", "not-imported"],
)
def test_program_in_a_package_that_is_imported_is_code(
    tmp_path: Path, files: dict[str, str], left: list[str]
) -> None:
    write(tmp_path, {"plugins/__init__.py": "", "plugins/go.py": CALLS, **files})
    assert callers.programs(tmp_path, "train.py") == left


@pytest.mark.parametrize("own", ["lib/train.py", "train.py"])
def test_package_of_the_function_is_code_with_packages_below(tmp_path: Path, own: str) -> None:
    write(
        tmp_path, {"lib/__init__.py": "", "lib/plugins/__init__.py": "", "lib/plugins/go.py": CALLS, own: ""}
    )
    left = [] if own.startswith("lib/") else ["lib/plugins/go.py"]
    assert callers.programs(tmp_path, own) == left


GUARD = 'if __name__ == "__main__":'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"def f(x): ...\n\n{GUARD}\n    f([1, 2])\n", "def f(x): ...\n"),
        (f"def f(x): ...\n{GUARD}\n    f([1,\n 2])", "def f(x): ...\n"),
        (f"{GUARD}\n    x = 1\ndef f(x): ...\n", None),
        (f"def f(x): ...\n{GUARD}\n    x = 1\nelse:\n    x = 2\n", None),
        ("def f(x): ...\nif __name__ == 'train':\n    x = 1\n", None),
        ("def f(x: ...\n", None),
    ],
    ids=["last", "lines", "first", "else", "another", "broken"],
)
def test_what_the_program_does_at_its_end_is_not_code(tmp_path: Path, text: str, left: str | None) -> None:
    (tmp_path / "go.py").write_text(text)
    (tmp_path / "other.py").write_text(text)
    tree = callers.without_main("go.py")(tree_of(tmp_path))
    read = {node.name: tree.brought.get(node.name, tmp_path / node.name).read_text() for node in tree.files}
    assert read == {"go.py": text if left is None else left, "other.py": text}


def test_function_in_no_file_leaves_every_program_whole(tmp_path: Path) -> None:
    (tmp_path / "go.py").write_text(f"{GUARD}\n    x = 1\n")
    tree = tree_of(tmp_path)
    assert callers.without_main("")(tree) is tree
