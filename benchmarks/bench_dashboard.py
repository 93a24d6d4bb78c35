"""The dashboard on a store of 10,000 ended runs with 20 parameters, 5 metrics and 100 points of each.

First view: from the moment the browser is told the address of a server that has just been started until the
sweep's table stands there; whole view: until all of its runs are in it. Filter and sort: from the key or
click until the table is drawn again. Memory: the server's, after that. The bounds are absolute: one second,
a tenth of one, half a gigabyte; how long the whole takes is shown beside.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from row import Row

from hostler import settings
from hostler.records import layout, project, sweeps
from hostler.records.body import encode
from hostler.records.metrics import MetricWriter
from hostler.records.points import Point
from hostler.spec.job import Job
from hostler.store import open_store
from hostler.store.memory import MemoryStore

RUNS, KEYS, METRICS, POINTS, TIMES = 10_000, 20, 5, 100, 3
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
    view, whole, typed, clicked, memory = (min(one) for one in zip(*found, strict=True))
    return [
        Row(f"dashboard, first view of {RUNS} runs", view, 1.0, 1, "s"),
        Row("the same: all runs are there", whole, 1.0, None, "s"),
        Row("the same: filter", typed, 100.0, 1, "ms"),
        Row("the same: sort", clicked, 100.0, 1, "ms"),
        Row("the same: memory of the server", memory, 512.0, 1, "MB"),
    ]


def _measure(browser: Any, store: Path) -> tuple[float, float, float, float, float]:
    command = [sys.executable, "-m", "hostler", "ui", "--store", str(store), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{address}#/sweep/all")
        page.locator("#row-5 .state").wait_for()
        view = page.evaluate("performance.now()") / 1000
        page.get_by_text(f"{RUNS:,} of {RUNS:,} runs").wait_for()
        whole = page.evaluate("performance.now()") / 1000
        words = ("k3<0.5", "k3<0.5 m1>0.2", "k3<0.5 m1>0.2 done -k4>0.9", "")
        typed = max(page.evaluate(TYPED, text) for text in words)
        clicked = max(page.evaluate(CLICKED) for _ in range(2))
        page.close()
        return view, whole, typed, clicked, _resident(server.pid)
    finally:
        server.terminate()
        server.wait()


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1000


def fill(folder: Path) -> None:
    """A sweep whose runs have all ended, as its workers would have left it, but not made durable."""
    store, draw = open_store(str(folder)), random.Random(0)
    project.ensure(store, "bench", settings.timing(one_machine=True))
    params = tuple({f"k{k}": round(draw.random(), 6) for k in range(KEYS)} for _ in range(RUNS))
    job = Job(name="all", command=("python", "train.py"), runs=params, metric="m0", method="random")
    sweeps.submit(store, job)
    for part in (layout.logs_of("all"), layout.ends("all")):
        os.makedirs(folder / part, exist_ok=True)
    for run in sweeps.run_ids(job):
        curve = [Point(s, 1.7e9 + s, {f"m{m}": draw.random() for m in range(METRICS)}) for s in range(POINTS)]
        last = {n: {"last": v, "min": 0.0, "max": 1.0, "step": POINTS} for n, v in curve[-1].values.items()}
        _put(folder, run, last)
        _curve(folder, run, curve)


def _put(folder: Path, run: str, metrics: dict[str, dict[str, float]]) -> None:
    claim = {"kind": "claim", "session": "w-1", "host": "here", "after": None}
    end = {
        "kind": "end",
        "attempt": 1,
        "state": "done",
        "host": "here",
        "attempts": 1,
        "started": 1.7e9,
        "seconds": 90.5,
        "total": 90.5,
        "step": POINTS,
        "metrics": metrics,
    }
    keys = (layout.log_entry("all", run, 1), layout.log_entry("all", run, 2), layout.end("all", run, 2))
    for key, record in zip(keys, (claim, end, end), strict=True):
        (folder / key).write_bytes(encode(json.loads(json.dumps(record))))


def _curve(folder: Path, run: str, points: list[Point]) -> None:
    held = MemoryStore()
    MetricWriter(held, run, 1).write(points)
    key = layout.metric_fragment(run, 1, 0, 0)
    os.makedirs((folder / key).parent)
    (folder / key).write_bytes(held.get(key).data)


if __name__ == "__main__":
    for row in main():
        print(row.name, round(row.ours, 3), row.unit, "bound", row.bound * row.floor if row.bound else "")
