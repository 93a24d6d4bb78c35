"""Debian's Chromium, driven by Playwright; and axe, which knows what shuts people out of a page.

Its headless shell draws and runs pages as Chromium does, with a third of the work: no window is made that
nobody sees. Chromium itself takes its place where it is absent.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import servers

AXE = "axe-core@4.10.3"
# Controls in sight; those that a table or a list moves to by its own keys have no place in the order of Tab.
CONTROLS = """() => [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')]
  .filter(one => one.tabIndex >= 0 && !one.disabled && one.checkVisibility() && !one.closest('.skip'))
  .map((one, n) => { one.dataset.control = n;
    return (one.getAttribute('aria-label') || one.innerText || one.tagName).trim().slice(0, 60) })"""
# The focused control, and whether one sees that it is: an outline of three times the page's contrast.
FOCUSED = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const one = document.activeElement, style = getComputedStyle(one);
  const [a, b] = [style.outlineColor, getComputedStyle(document.body).backgroundColor].map(light);
  const clear = style.outlineStyle !== 'none' && Math.max(a / b, b / a) >= 3;
  const drawn = clear || style.outlineStyle === 'auto' || one.type === 'range';
  return [one.dataset.control ?? null, drawn && one.checkVisibility({ opacityProperty: true })] }"""
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
    binary = shutil.which("chromium-headless-shell") or shutil.which("chromium")
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


def window(browser: Any, **options: Any) -> Any:
    """A context for pages that share what a browser remembers."""
    return browser.new_context(viewport={"width": 1280, "height": 800}, **options)


class Tab:
    """A page that remembers what went wrong in it, and what it asked of others.

    It has a context of its own, unless it is given the `context` of others: a page there starts no process
    and knows the dashboard's scripts."""

    def __init__(self, browser: Any, home: str, *, context: Any = None, **options: Any) -> None:
        self.context = context or window(browser, **options)
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

    def go(self, place: str, words: str = "") -> None:
        """Open another page of the dashboard, and wait until these words stand there."""
        self.page.evaluate("where => { location.hash = where }", place)
        if words:
            self.page.get_by_text(words).first.wait_for()

    def check(self) -> None:
        """Nothing was said in the console, nothing asked of another host, nothing hostile ran."""
        assert self.wrong == []
        assert self.elsewhere == []
        assert self.page.evaluate("window.pwned") is None

    def faults(self, *, every: bool = False, only: Sequence[str] = ()) -> list[str]:
        """What axe calls serious or critical, or `every` finding; of all its rules, or these `only`.

        The browser puts it in, past the policy."""
        self.page.evaluate(_axe().read_text())
        options = {"resultTypes": ["violations"], **({"runOnly": list(only)} if only else {})}
        found = self.page.evaluate("options => axe.run(document, options)", options)["violations"]
        grave = [one for one in found if every or one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in grave]

    def unreached(self) -> tuple[list[str], set[str]]:
        """Controls in sight that Tab does not come to, and those whose focus nobody sees."""
        controls = dict(enumerate(self.page.evaluate(CONTROLS)))
        self.page.evaluate("document.activeElement.blur()")
        unseen = set()
        for _ in range(len(controls) + 5):
            self.page.keyboard.press("Tab")
            number, seen = self.page.evaluate(FOCUSED)
            if number is not None:
                name = controls.pop(int(number), "")
                unseen |= set() if seen else {name}
        return list(controls.values()), unseen


TabAt = Callable[[str], Tab]  # opens nothing yet: the tab of a dashboard, by its address


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
