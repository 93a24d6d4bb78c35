"""The dashboard on the store of `bench_frame.py`: 10,000 ended runs with 20 parameters, 5 metrics and 100
points of each, as workers leave it.

First view: from the moment the browser is told the address of a server that has just been started until the
first screen of the sweep's table stands there, in order and with how many runs there are; whole view: until
all of its runs are in it. The page's own clock is read in the frame in which it is so: Playwright looks after
20, 70, 170, 270 and 770 ms, and would call a view of 0.3 s one of 0.8. The tab is open before the server is
started, since Chromium goes on building its own window for a while after Playwright has it.

Filter and sort: from the key or click until the table is drawn again. Memory: the server's, after that. The
bounds are absolute: 0.3 s, 30 ms, a tenth of a second to sort, half a gigabyte; how long the whole takes, and
how long a person waits who types the command, is shown beside.

Pan and zoom: 200 curves of 10,000 points, 20 ms from frame to frame on average: 50 frames a second
(`moving_curves.py`). What the slowest twentieth of the frames take is shown beside.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import moving_curves
from bench_frame import RUNS, fill
from row import Row

TIMES = 3
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SETTLED = 1500  # milliseconds after which a new tab is quiet
WATCHED = """(() => {
  const look = () => {
    const words = document.querySelector('.total')?.textContent ?? '';
    if (document.querySelector('#row-15 .state') && words.includes('of RUNS runs')) note('first');
    if (words.startsWith('RUNS of RUNS runs')) note('whole');
    if (!('whole' in seen)) requestAnimationFrame(look);
  };
  const seen = window.seen = {}; // seconds after which a view was on the screen
  const note = (view) => {
    if (view in seen) return;
    seen[view] = 0;
    setTimeout(() => { seen[view] = performance.now() / 1000; });
  };
  requestAnimationFrame(look);
})()""".replace("RUNS", f"{RUNS:,}")
NOTED = """() => new Promise(done => {
  const ask = () => seen.whole ? done([seen.first, seen.whole]) : setTimeout(ask, 20);
  ask();
})"""
TYPED = """text => new Promise(done => {
  const box = document.getElementById('filter'), begun = performance.now();
  box.value = text;
  box.dispatchEvent(new Event('input'));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
})"""
CLICKED = """() => new Promise(done => {
  const begun = performance.now();
  document.querySelectorAll('.headrow button')[3].click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
})"""


def main() -> list[Row]:
    binary = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        binary = None
    if binary is None:
        print("bench_dashboard: no chromium or no playwright; not measured", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name, sync_playwright() as playwright:
        fill(Path(name) / "store")
        browser = playwright.chromium.launch(executable_path=binary, args=FLAGS)
        found = [_measure(browser, Path(name) / "store") for _ in range(TIMES)]
        moving_curves.fill_curves(Path(name) / "curves")
        moved = [_move(browser, Path(name) / "curves") for _ in range(TIMES)]
        browser.close()
    return rows(found, moved)


def rows(found: Sequence[Sequence[float]], moved: Sequence[Sequence[float]]) -> list[Row]:
    """The medians of what `_measure` and `_move` found, each against its bound."""
    view, whole, asked, typed, clicked, memory = (statistics.median(one) for one in zip(*found, strict=True))
    frame, slow, work, cpu = (statistics.median(one) for one in zip(*moved, strict=True))
    curves = f"{moving_curves.RUNS} curves of {moving_curves.POINTS:,} points"
    return [
        Row(f"dashboard, first view of {RUNS} runs", view, 0.3, 1, "s"),
        Row("the same: all runs are there", whole, 1.0, None, "s"),
        Row("the same: first view, from the start of the command", asked, 1.0, None, "s"),
        Row("the same: filter", typed, 30.0, 1, "ms"),
        Row("the same: sort", clicked, 20.0, 1, "ms"),
        Row("the same: memory of the server", memory, 200.0, 1, "MB"),
        Row(f"dashboard, pan and zoom of {curves}: a frame", frame, 20.0, 1, "ms"),
        Row("the same: one frame in twenty takes so long, or longer", slow, 20.0, None, "ms"),
        Row("the same: main thread of the page", work, 20.0, 1, "ms"),
        Row("the same: CPU time of all of Chromium", cpu, 20.0, None, "ms"),
    ]


@contextmanager
def _server(store: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`hostler ui` on a store: its process and its address."""
    command = [sys.executable, "-m", "hostler", "ui", "--store", str(store), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server, server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def _move(browser: Any, store: Path) -> tuple[float, float, float, float]:
    with _server(store) as (_, address):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        moved = moving_curves.measure_moving(page, address)
        page.close()
        return moved


def _measure(browser: Any, store: Path) -> tuple[float, float, float, float, float, float]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(WATCHED)
    page.wait_for_timeout(SETTLED)
    begun = time.perf_counter()
    with _server(store) as (server, address):
        said = time.perf_counter() - begun
        page.goto(f"{address}#/sweep/all")
        page.locator("#row-15 .state").wait_for()
        page.get_by_text(f"of {RUNS:,} runs").wait_for()
        assert page.locator(".grid .body .row a").count() > 15
        assert page.locator(".headrow [aria-sort=descending], .headrow [aria-sort=ascending]").count() == 1
        page.get_by_text(f"{RUNS:,} of {RUNS:,} runs").wait_for()
        view, whole = page.evaluate(NOTED)
        assert 0 < view <= whole
        words = ("key3<0.5", "key3<0.5 m1>0.2", "key3<0.5 m1>0.2 done -key6>0.9", "")
        typed = max(page.evaluate(TYPED, text) for text in words)
        clicked = max(page.evaluate(CLICKED) for _ in range(2))
        page.close()
        return view, whole, said + view, typed, clicked, _resident(server.pid)


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1000


if __name__ == "__main__":
    import run

    sys.exit(run.main([Path(__file__).stem]))  # 1 when a bound is missed
