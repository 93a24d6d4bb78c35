"""Photographs of pages: the dashboard of a folder's runs, Chromium, and the PNG of what it shows.

A picture that names a place of the machine that makes it is refused.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OWN_PLACE = re.compile(r"(?<![\w.~:/])/(?:tmp|home|root|work|var|Users|private|opt|mnt|srv)(?:/[^\s'\"<>]*)+")
NEUTRAL = """() => {
    for (const shown of document.querySelectorAll('#store, .store')) {
        shown.textContent = '.hostler';
        Object.defineProperty(shown, 'textContent', {configurable: true, set() {}, get: () => '.hostler'});
    }
}"""  # the page writes the store's address again with every event


class Refused(Exception):
    """A command failed, or shows a path of this machine: no picture of that."""


def check_places(text: str, name: str) -> None:
    """Refuse a text that names a place of the machine that makes the picture."""
    if found := OWN_PLACE.search(text):
        raise Refused(f"{name} would show {found[0]}, a path of this machine")


@contextmanager
def chromium() -> Iterator[Any]:
    """Debian's browser, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def dashboard(folder: Path) -> Iterator[str]:
    """`hostler ui` on the runs of a folder, until the block ends; its address."""
    words = [sys.executable, "-m", "hostler", "ui", "--no-browser", "--port", "0"]
    board = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert board.stdout is not None
        yield board.stdout.readline().strip()
    finally:
        board.terminate()
        board.wait(60)


def save_page(page: Any, path: Path) -> None:
    """Save what a browser shows as a PNG, without the store's address."""
    from PIL import Image

    page.evaluate(NEUTRAL)
    page.wait_for_timeout(400)
    check_places(page.inner_text("body"), path.name)
    with Image.open(io.BytesIO(page.screenshot())) as whole:
        whole.convert("RGB").quantize(220).save(path, optimize=True)
