"""`make picture`: pictures are drawn from real runs, and those in the docs show what it says today."""

from __future__ import annotations

import html
import re
import sys
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import servers

servers.library("rich")

ROOT = Path(__file__).parents[2]
SWEEP = "images/first-sweep.svg"


@pytest.fixture
def picture(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "docs")
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


@pytest.mark.parametrize(
    "shown",
    ["/tmp/ui8/store", "store at /home/ada/x, live", "(/root/.cache)", "'/srv/project/docs'"],
)
def test_path_of_the_machine_is_refused(picture: ModuleType, shown: str) -> None:
    with pytest.raises(picture.Refused, match="a path of this machine"):
        picture.check_places(f"hello {shown} there", "x.png")


@pytest.mark.parametrize("shown", [".hostler", "val/loss", "s3://b/tmp/x", "~/.ssh/config", "hello/3", "1/2"])
def test_names_with_slashes_are_not_paths_of_the_machine(picture: ModuleType, shown: str) -> None:
    picture.check_places(f"hello {shown} there", "x.png")


def test_page_that_rewrites_the_store_shows_none(browser: Any, picture: ModuleType, tmp_path: Path) -> None:
    body = "<span id=store>/tmp/x/store</span><p id=other>fine</p>"
    script = "<script>setInterval(() => document.getElementById('store').textContent = '/tmp/y', 20)</script>"
    page = browser.new_page()
    page.set_content(body + script)
    picture.save_page(page, tmp_path / "a.png")
    assert page.inner_text("#store") == ".hostler" and (tmp_path / "a.png").stat().st_size
    page.evaluate("document.getElementById('other').textContent = 'at /tmp/z/store'")
    with pytest.raises(picture.Refused, match="/tmp/z/store"):
        picture.save_page(page, tmp_path / "b.png")
    assert not (tmp_path / "b.png").exists()


def test_every_picture_is_shown_and_every_shown_one_is_there() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    found = [(page.parent, page.read_text()) for page in pages]
    shown = {
        (folder / name).resolve()
        for folder, text in found
        for name in re.findall(r'(?:\]\(|src="|srcset=")([^")\s]+\.(?:png|svg))', text)
    }
    kept = {path for ending in ("png", "svg") for path in ROOT.glob(f"docs/images/**/*.{ending}")}
    assert kept - shown == set()
    assert {path for path in shown if not path.exists()} == set()
