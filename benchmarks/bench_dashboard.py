"""The dashboard on the store of `bench_frame.py`: 10,000 ended runs with 20 parameters, 5 metrics and 100
points of each, as workers leave it.

First view: from the moment the browser is told the address of a server that has just been started until the
first screen of the sweep's table stands there, in order and with how many runs there are; whole view: until
all of its runs are in it. Filter and sort: from the key or click until the table is drawn again. Memory: the
server's, after that. The bounds are absolute: one second, a tenth of one, half a gigabyte; how long the whole
takes, and how long a person waits who types the command, is shown beside.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_frame import RUNS, fill
from row import Row

TIMES = 3
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
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
        browser.close()
    view, whole, asked, typed, clicked, memory = (min(one) for one in zip(*found, strict=True))
    return [
        Row(f"dashboard, first view of {RUNS} runs", view, 1.0, 1, "s"),
        Row("the same: all runs are there", whole, 1.0, None, "s"),
        Row("the same: first view, from the start of the command", asked, 1.0, None, "s"),
        Row("the same: filter", typed, 100.0, 1, "ms"),
        Row("the same: sort", clicked, 100.0, 1, "ms"),
        Row("the same: memory of the server", memory, 512.0, 1, "MB"),
    ]


def _measure(browser: Any, store: Path) -> tuple[float, float, float, float, float, float]:
    command = [sys.executable, "-m", "hostler", "ui", "--store", str(store), "--no-browser"]
    begun = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        said = time.perf_counter() - begun
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{address}#/sweep/all")
        page.locator("#row-15 .state").wait_for()
        page.get_by_text(f"of {RUNS:,} runs").wait_for()
        view = page.evaluate("performance.now()") / 1000
        names = page.locator(".grid .body .row a").all_inner_texts()
        assert len(names) > 15 and names == [f"all/{n}" for n in range(len(names))], names
        page.get_by_text(f"{RUNS:,} of {RUNS:,} runs").wait_for()
        whole = page.evaluate("performance.now()") / 1000
        words = ("key3<0.5", "key3<0.5 m1>0.2", "key3<0.5 m1>0.2 done -key6>0.9", "")
        typed = max(page.evaluate(TYPED, text) for text in words)
        clicked = max(page.evaluate(CLICKED) for _ in range(2))
        page.close()
        return view, whole, said + view, typed, clicked, _resident(server.pid)
    finally:
        server.terminate()
        server.wait()


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1000


if __name__ == "__main__":
    for row in main():
        print(row.name, round(row.ours, 3), row.unit, "bound", row.bound * row.floor if row.bound else "")
