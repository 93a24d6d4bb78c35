"""`make picture`: pictures are drawn from real runs, and those in the docs show what it says today."""

from __future__ import annotations

import html
import re
import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("rich")

ROOT = Path(__file__).parents[2]
SWEEP = "images/first-sweep.svg"


@pytest.fixture
def picture(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = util.spec_from_file_location("hostler_docs_picture", ROOT / "docs" / "picture.py")
    assert spec and spec.loader
    made = util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, made)
    spec.loader.exec_module(made)
    return made


def lines(path: Path) -> list[str]:
    """What a picture of a terminal shows, line by line."""
    rows: dict[str, str] = {}
    for y, text in re.findall(r'<text class="[^"]*"[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', path.read_text()):
        rows[y] = rows.get(y, "") + html.unescape(text).replace("\xa0", " ")
    return [row.rstrip() for row in rows.values()]


def plan(shown: list[str]) -> list[str]:
    """The part that is the same every time: how many run at a time is the machine's."""
    begin = shown.index("$ hostler plan sweep.yaml")
    lines = shown[begin : shown.index("$ hostler sweep -y --wait sweep.yaml")]
    return [line for line in lines if line and " at a time" not in line]


def test_picture_of_a_sweep_matches_the_one_in_docs(
    picture: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs" / "images").mkdir(parents=True)
    monkeypatch.setattr(picture, "DOCS", tmp_path / "docs")
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    assert picture.main(["first-sweep"]) == 0
    assert [path.name for path in (tmp_path / "docs").rglob("*.*")] == ["first-sweep.svg"]
    drawn = lines(tmp_path / "docs" / SWEEP)
    assert plan(drawn) == plan(lines(ROOT / "docs" / SWEEP))
    assert all(any(line.split()[:2] == [f"hello/{n}", "done"] for line in drawn) for n in range(6))


def test_only_commands_before_a_wanted_picture_are_typed(picture: ModuleType) -> None:
    def names(*words: str) -> list[str]:
        return [scene.name.removeprefix("images/").removesuffix(".svg") for scene in picture.scenes(words)]

    assert names("first-sweep") == ["first-run", "first-sweep"]
    assert names("survive") == ["first-survive"]
    assert names("dashboard") == ["first-run", "first-sweep", "first-best"]
    assert names() == ["demo", "first-run", "first-sweep", "first-best", "first-survive"]


def test_screen_is_what_overwritten_lines_leave(picture: ModuleType) -> None:
    up, erase = "\x1b[1A", "\x1b[2K"
    assert picture._screen(f"one\r\ntwo\r\n{up}{erase}three\r\n") == "one\nthree"
    assert picture._screen("\x1b[1mbold\x1b[0m  \r\n\r\n") == "\x1b[1mbold\x1b[0m"


def test_a_command_that_fails_gives_no_picture(picture: ModuleType, tmp_path: Path) -> None:
    scene = picture.Scene("images/bad.svg", "hello", ("hostler show nothing",))
    with pytest.raises(picture.Refused, match="hostler show nothing: exit code 1"):
        picture._draw(scene, tmp_path, write=True)
