"""Pages looked at on a screen, on a phone and on paper: do they fit, is axe content, does nothing move, do
they look as before.

Pictures are compared with golden ones within a tolerance: fonts and antialiasing differ a little.

HOSTLER_GOLDEN=1 writes them anew; look at each before it lands.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from browser import Tab

WIDE, NARROW, PAPER = (1280, 800), (390, 844), (718, 1000)
LOOKS = [  # medium, size, theme; each of these once, and the rest in the long dose
    pytest.param("wide", WIDE, "light", marks=pytest.mark.soak),
    ("wide", WIDE, "dark"),
    ("narrow", NARROW, "light"),
    pytest.param("narrow", NARROW, "dark", marks=pytest.mark.soak),
    ("paper", PAPER, "light"),
]
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
MOVING = """() => [...document.querySelectorAll("*")].filter((one) => {
    const { transitionDuration: times, animationName: name } = getComputedStyle(one);
    return times.split(", ").some((time) => time !== "0s") || name !== "none";
}).map((one) => one.outerHTML.slice(0, 80))"""  # though the reader wants no motion
SIZES = """() => new Promise((done) => {
    const look = () => {
        const boxes = [...document.querySelectorAll("svg, canvas, table, main")].map((one) => {
            const box = one.getBoundingClientRect();
            return [Math.round(box.width), Math.round(box.height)];
        });
        done(JSON.stringify([document.documentElement.scrollHeight, boxes]));
    };
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(look, 150)));
})"""  # after two frames, in which the page itself has heard of its new size
LOOKED = 100  # times, at most
# What is as tall as the window stays as it is while the window grows to the page's height.
KEPT = """() => {
    for (const one of document.querySelectorAll(".grid, .chart")) one.style.height = `${one.offsetHeight}px`;
    return document.documentElement.scrollHeight;
}"""
FREED = """() => {
    for (const one of document.querySelectorAll(".grid, .chart")) one.style.height = "";
}"""
GOLDEN = Path(__file__).parent / "real" / "golden"
SHRINK = 3  # pictures are kept so many times smaller
MEAN = 2.5  # levels of 255 by which pixels may differ on average
FAR, SHARE = 60, 0.012  # pixels that differ by more than so many levels, and the share of them allowed


def tab_of(browser: Any, home: str, size: tuple[int, int], theme: str) -> Tab:
    """A tab of that size whose reader wants nothing to move."""
    tab = Tab(browser, home, color_scheme=theme, reduced_motion="reduce")
    tab.page.set_viewport_size({"width": size[0], "height": size[1]})
    return tab


def faults_of_page(tab: Tab, name: str, medium: str, theme: str, calm: str = "() => {}") -> list[str]:
    """What is wrong with the page that a tab shows; `calm` hides what differs from one day to the next."""
    if medium == "paper":
        tab.page.emulate_media(media="print")
    _settle(tab)
    wider = tab.page.evaluate(WIDER)
    wrong = [f"{name} is {wider} pixels too wide"] if wider else []
    if moving := tab.page.evaluate(MOVING):
        wrong.append(f"{name}: {len(moving)} parts move, such as {moving[0]}")
    asked = ("color-contrast",) if medium == "paper" else ()  # of what axe asks, paper can be read or not
    wrong += [f"{name}: {fault}" for fault in tab.faults(every=True, only=asked)]
    tab.page.evaluate(calm)
    if (medium, theme) != ("narrow", "dark"):
        wrong += filter(None, [differs(f"{name}-{medium}-{theme}", picture(tab))])
    tab.page.emulate_media(media="screen")
    return wrong


def picture(tab: Tab) -> bytes:
    """The whole page, seen in a window as tall as it.

    Chromium takes a picture of more than its window in one of a single pixel, which is back at its size only
    a moment later: pages that follow the window's width are in the picture as they were at either."""
    size, tall = tab.page.viewport_size, tab.page.evaluate(KEPT)
    if tall > size["height"]:
        tab.page.set_viewport_size({"width": size["width"], "height": tall})
        _settle(tab)
    png = bytes(tab.page.screenshot())
    tab.page.set_viewport_size(size)
    tab.page.evaluate(FREED)
    return png


def _settle(tab: Tab) -> None:
    """Until two looks at the page's sizes agree: plots that a medium makes wider are drawn anew, which takes
    as long as the machine is busy."""
    before = ""
    for _ in range(LOOKED):
        now = tab.page.evaluate(SIZES)
        if now == before:
            return
        before = now
    raise AssertionError(f"the page never comes to rest: {before[:300]}")


def differs(name: str, png: bytes) -> str:
    """How a picture differs from its golden one; '' if it does not, or was just written."""
    from PIL import Image, ImageChops, ImageStat

    with Image.open(io.BytesIO(png)) as whole:
        small = whole.convert("RGB").reduce(SHRINK)
    path = GOLDEN / f"{name}.png"
    if os.environ.get("HOSTLER_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        small.quantize(96).save(path, optimize=True)
        return ""
    with Image.open(path) as golden:
        wanted = golden.convert("RGB")
    if abs(wanted.height - small.height) > 3 or wanted.width != small.width:
        return f"{name}: {small.size} and not {wanted.size}"
    size = (small.width, min(wanted.height, small.height))
    between = ImageChops.difference(wanted.crop((0, 0, *size)), small.crop((0, 0, *size)))
    mean = sum(ImageStat.Stat(between).mean) / 3
    histogram = between.convert("L").histogram()
    share = sum(histogram[FAR:]) / (size[0] * size[1])
    return f"{name}: mean {mean:.2f}, far {share:.4f}" if mean > MEAN or share > SHARE else ""
