"""Pictures of the dashboard: each page of the gallery's runs, light and dark, some as a phone shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from photographs import chromium, dashboard, save_page


@dataclass(frozen=True)
class View:
    """A page of the dashboard; a picture of it in each theme, and at each width."""

    name: str
    place: str
    ready: str  # a text that is there once it is drawn
    select: tuple[int, ...] = ()  # rows of the grid's table that are selected before
    widths: tuple[int, ...] = (1280,)
    tall: int = 0  # pixels of the wide picture; 0: as a screen

    @property
    def file(self) -> str:
        return f"dashboard-{self.name}"


GROUPS = "by=lr&band=quantiles&smooth=0.3"
VIEWS = (
    View("sweeps", "#/", "36 runs", widths=(1280, 390)),
    View("runs", "#/sweep/pictures", "36 of 36 runs", (0, 1, 2), (1280, 390)),
    View("pruned", "#/sweep/search", "24 of 24 runs"),
    View("curves", "#/sweep/pictures/curves", "36 curves"),
    View(
        "groups",
        f"#/sweep/pictures/curves?metric=accuracy&metric=loss&{GROUPS}",
        "72 curves",
        (),
        (1280, 390),
    ),
    View("search", "#/sweep/search/search", "with a value", tall=1660),
    View("compare", "#/sweep/pictures/compare", "Parameters that differ", (0, 1, 4)),
    View("errors", "#/errors", "FloatingPointError"),
    View("run", "#/run/{gang}", "Attempts"),
)
# While something runs and has been measured.
WORKERS = View("workers", "#/workers", "MB of", widths=(1280, 390), tall=640)
HEIGHTS = {1280: 800, 390: 844}
THEMES = ("light", "dark")


def photograph(folder: Path, views: Sequence[View], out: Path) -> None:
    """Save pictures of the dashboard of the runs in a folder."""
    if not views:
        return
    with dashboard(folder) as address, chromium() as browser:
        for theme in THEMES:
            for view in views:
                for width in view.widths:
                    _show(browser, address, view, theme, width, out)


def _show(browser: Any, address: str, view: View, theme: str, width: int, out: Path) -> None:
    size = {"width": width, "height": HEIGHTS[width]}
    if view.tall and width > 600:
        size["height"] = view.tall
    context = browser.new_context(viewport=size, color_scheme=theme)
    page = context.new_page()
    page.goto(address)
    page.locator(".sweeps a").first.wait_for()
    place = view.place
    if "{gang}" in place:
        page.evaluate("location.hash = '#/sweep/pair'")
        place = page.get_by_role("link", name="pair/0").get_attribute("href")
    if view.select:
        page.evaluate("location.hash = '#/sweep/pictures'")
        for row in view.select:
            page.locator(".grid .body .row .tick").nth(row).click()
    page.evaluate("where => { location.hash = where }", place)
    page.get_by_text(view.ready).first.wait_for()
    page.wait_for_timeout(800)  # curves come after the page
    small = "" if width == 1280 else "-phone"
    save_page(page, out / f"{view.file}{small}{'-dark' if theme == 'dark' else ''}.png")
    context.close()
