"""The documentation as a site: it builds without a warning, whole, and asks nothing of any other host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import servers
from browser import Tab

servers.library("mkdocs")
servers.library("material")

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\brel=["']?(?:stylesheet|preconnect)[^>]*//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(made)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return made


def test_every_page_and_every_example_is_there(site: Path) -> None:
    names = [path.stem for path in ROOT.glob("docs/*.md")]
    examples = [f"examples/{path.parent.name}" for path in ROOT.glob("examples/*/README.md")]
    for name in ["index", "architecture", "changelog", *names, *examples]:
        assert (site / f"{name}.html").is_file(), name


def test_nothing_is_fetched_from_another_host(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert not FETCHED.search(path.read_text()), path
    for path in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", path.read_text()), path


def test_every_picture_that_a_page_shows_is_there(site: Path) -> None:
    shown = 0
    for path in site.rglob("*.html"):
        for name in re.findall(r'(?:src|srcset)="([^":]+\.(?:png|svg))"', path.read_text()):
            assert (path.parent / name).is_file(), (path.name, name)
            shown += 1
    assert shown > 50


def test_llms_txt_lists_every_page_with_its_first_sentence(site: Path) -> None:
    lines = (site / "llms.txt").read_text().splitlines()
    listed = dict(re.findall(r"^- \[.+?\]\(([^)]+)\): (.*)$", "\n".join(lines), re.MULTILINE))
    assert {f"{path.stem}.html" for path in ROOT.glob("docs/*.md")} <= set(listed)
    assert all((site / name).is_file() for name in listed) and all(listed.values())
    assert listed["assistants.html"].startswith("`hostler mcp` lets an assistant look at your runs")


def test_search_finds_pages_without_a_server(site: Path) -> None:
    assert "money.html" in (site / "search" / "search_index.js").read_text()


def test_the_page_of_errors_lists_what_the_code_says(site: Path) -> None:
    page = (site / "errors.html").read_text()
    assert "hostler status lists all runs" in page
    assert page.count("<tr>") > 300


@pytest.mark.real
@pytest.mark.needs("chromium")
def test_opened_from_a_folder_it_searches_and_asks_nobody(browser: Any, site: Path) -> None:
    home = site.as_uri()
    tab = Tab(browser, home)
    tab.page.goto(f"{home}/index.html")
    tab.page.locator("input.md-search__input").first.focus()
    tab.page.keyboard.type("preemption")
    tab.page.wait_for_selector(".md-search-result__item")
    assert tab.elsewhere == [] and tab.wrong == []
