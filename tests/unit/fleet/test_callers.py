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
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert callers.programs(tmp_path, "train.py") == left


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
