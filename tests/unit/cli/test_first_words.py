"""What a newcomer types first, in a folder where nothing is: it helps, and leaves nothing behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hostler
from hostler.cli import here, main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    here.project.cache_clear()
    yield tmp_path
    here.project.cache_clear()


def typed(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["hostler", *words])
    code = main._main()
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ([], "Usage: hostler [OPTIONS] VERB …", "worker"),
        (["image"], "Usage: hostler image [OPTIONS] COMMAND [ARGS]...", "list"),
    ],
)
def test_a_name_that_wants_more_shows_its_help(
    folder: Path,
    words: list[str],
    first: str,
    last: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = typed(words, monkeypatch, capsys)
    assert (code, err) == (0, "")
    lines = out.strip().splitlines()
    assert lines[0] == first and lines[-1].split()[0] == last


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["gc"], 0, ["nothing to remove"]),
        (
            ["up", "nowhere"],
            1,
            ["hostler: no fleet named 'nowhere'", "  → hostler.yaml has: none; or --on local"],
        ),
        (
            ["import", "nowhere"],
            1,
            ["hostler: no file or folder named nowhere", "  → name one that another tool reads"],
        ),
        (
            ["completion"],
            2,
            [
                "hostler: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish",
                "  → hostler completion --help",
            ],
        ),
        (
            ["sweep", "train.py"],
            2,
            [
                "hostler: train.py is a script, and a sweep is a YAML file",
                "  → hostler run train.py runs it once; hostler init writes a sweep file",
            ],
        ),
    ],
)
def test_refusal_is_two_lines_and_makes_no_store(
    folder: Path,
    words: list[str],
    code: int,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, _, err = typed(words, monkeypatch, capsys)
    assert (found, err.splitlines()) == (code, said)
    assert list(folder.iterdir()) == []


def test_version_is_told_to_people_and_to_programs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(["--version"], monkeypatch, capsys)[:2] == (0, f"hostler, version {hostler.__version__}\n")
    code, out, _ = typed(["--version", "--json"], monkeypatch, capsys)
    assert code == 0 and json.loads(out)["version"] == hostler.__version__
    assert typed(["--"], monkeypatch, capsys)[1].startswith("Usage: hostler")
    code, out, err = typed(["--json", "status"], monkeypatch, capsys)
    assert (code, out) == (2, "") and "--json goes behind a verb: hostler status --json" in err
