"""Debian's Chromium, driven by Playwright; and axe, which knows what shuts people out of a page."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import servers

IMAGES = Path(__file__).parents[1] / "docs" / "images"
AXE = "axe-core@4.10.3"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skips where there is none."""
    binary = shutil.which("chromium")
    if binary is None:
        servers.missing("chromium is not installed")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        servers.missing("playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page that remembers what went wrong in it, and what it asked of others."""

    def __init__(self, browser: Any, home: str, **options: Any) -> None:
        size = {"width": 1280, "height": 800}
        self.context = browser.new_context(viewport=size, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on(
            "console", lambda said: said.type in ("error", "warning") and self.wrong.append(said.text)
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        own = (home.partition("#")[0], "data:", "blob:")
        self.page.on("request", lambda r: None if r.url.startswith(own) else self.elsewhere.append(r.url))

    def check(self) -> None:
        """Nothing was said in the console, nothing asked of another host, nothing hostile ran."""
        assert self.wrong == []
        assert self.elsewhere == []
        assert self.page.evaluate("window.pwned") is None

    def faults(self) -> list[str]:
        """What axe calls serious or critical. The browser puts it in, past the page's policy."""
        self.page.evaluate(_axe().read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        grave = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in grave]

    def picture(self, name: str) -> None:
        """For the docs, with HOSTLER_PICTURES=1; a test's own folder is nobody's business."""
        if not os.environ.get("HOSTLER_PICTURES"):
            return
        from PIL import Image

        self.page.evaluate(
            "for (const e of document.querySelectorAll('#store, .store')) e.textContent = '.hostler'"
        )
        self.page.wait_for_timeout(400)
        IMAGES.mkdir(exist_ok=True)
        with Image.open(io.BytesIO(self.page.screenshot())) as whole:
            whole.convert("RGB").quantize(220).save(IMAGES / f"{name}.png", optimize=True)


def _axe() -> Path:
    """Installed once per user, under a lock, since several test processes may want it at a time."""
    home = Path.home() / ".cache" / "hostler-test" / "axe"
    script = home / "node_modules" / "axe-core" / "axe.min.js"
    if not shutil.which("npm"):
        servers.missing("npm, which brings axe, is not installed")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not script.exists():
            quiet = ["--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
            done = subprocess.run(
                ["npm", "install", *quiet, "--prefix", str(home), AXE], capture_output=True, text=True
            )
            if done.returncode or not script.exists():
                servers.missing(f"axe could not be installed: {done.stderr[-300:]!r}")
    return script
