from __future__ import annotations

from pathlib import Path

import pytest

from hostler.errors import MissingError, UsageError
from hostler.spec.script import command_for, script_args, startable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / 'it\'s a "folder"; echo x'
    (folder / "src").mkdir(parents=True)
    for name in ("train.py", "my train.py", "prep.sh", "notes.txt", "src/model.py"):
        (folder / name).write_text("")
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["train.py", "--lr", "0.1"], ("python", "train.py", "--lr", "0.1")),
        (["my train.py", "a b", ""], ("python", "my train.py", "a b", "")),
        (["src/model.py"], ("python", "src/model.py")),
        (["prep.sh", "; rm"], ("bash", "prep.sh", "; rm")),
        (["tool", "-x"], ("./tool", "-x")),
        (["./tool"], ("./tool",)),
        (["sh", "-c", "echo hi"], ("sh", "-c", "echo hi")),
        (["env", "A=b"], ("env", "A=b")),
        (["torchrun", "train.py"], ("torchrun", "train.py")),
        (["/bin/sh", "prep.sh"], ("/bin/sh", "prep.sh")),
    ],
)
def test_scripts_get_their_interpreter_and_programs_stay(
    folder: Path, words: list[str], command: tuple[str, ...]
) -> None:
    assert command_for(words, folder) == command


@pytest.mark.parametrize(
    ("word", "near"),
    [("trian.py", "train.py"), ("model.py", "src/model.py"), ("src/modle.py", "src/model.py")],
)
def test_a_missing_script_gets_the_nearest_one_named(folder: Path, word: str, near: str) -> None:
    with pytest.raises(MissingError, match=word) as caught:
        command_for([word], folder)
    assert caught.value.hint == f"did you mean {near!r}?"


def test_what_cannot_be_run_says_why(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"notes.txt is not a program"):
        command_for(["notes.txt"], folder)
    with pytest.raises(UsageError, match="src is a folder"):
        command_for(["src"], folder)
    with pytest.raises(UsageError, match="nothing to run"):
        command_for([], folder)
    with pytest.raises(MissingError):
        command_for(["no-such-program-at-all"], folder)


@pytest.mark.parametrize(
    ("argv", "start"),
    [
        (("python", "-u", "train.py", "--lr"), 3),
        (("python", "-m", "pkg.train", "--lr"), 3),
        (("torchrun", "--nproc-per-node", "4", "train.py", "--lr"), 4),
        (("./tool", "--config", "x.py"), 1),
        (("/usr/bin/python3", "a.py"), 2),
        ((), 0),
    ],
)
def test_where_the_scripts_own_arguments_begin(argv: tuple[str, ...], start: int) -> None:
    assert script_args(argv) == start


def test_an_option_that_hostler_does_not_have_is_no_script(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hostler run has no option --nam"):
        command_for(["--nam", "x", "train.py"], tmp_path)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("t.py", "--lr", "{lr}"), ("python", "t.py", "--lr", "{lr}")),
        (("more/t.sh",), ("bash", "more/t.sh")),
        (("able.py",), ("able.py",)),
        (("gone.py",), ("gone.py",)),
        (("python", "t.py"), ("python", "t.py")),
        ((), ()),
    ],
)
def test_script_that_stands_alone_gets_what_runs_it(
    tmp_path: Path, words: tuple[str, ...], command: tuple[str, ...]
) -> None:
    (tmp_path / "more").mkdir()
    for name in ("t.py", "more/t.sh", "able.py"):
        (tmp_path / name).touch()
    (tmp_path / "able.py").chmod(0o755)
    assert startable(words, tmp_path) == command
