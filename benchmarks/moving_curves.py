"""Pan and zoom of two hundred curves of ten thousand points in a real Chromium, for `bench_dashboard.py`.

A frame's time is from one `requestAnimationFrame` to the next while every frame moves the picture: it holds
the page's own work and the drawing, which Chromium does on the CPU here. The page's own part is measured
beside it, and so is the CPU time of all of Chromium's processes, which other work on the machine does not
change.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from hostler.records.series.points import Point
from seen_world import Seen

RUNS, POINTS, FRAMES = 200, 10_000, 120
MOVE = """async ([kind, frames]) => {
  const canvas = document.querySelector('.panel canvas'), box = canvas.getBoundingClientRect();
  const times = [], more = { bubbles: true, cancelable: true };
  const at = (x, y) => ({ clientX: box.x + x, clientY: box.y + y, ...more });
  const point = (name, x, y) => canvas.dispatchEvent(
    new PointerEvent(name, { ...at(x, y), pointerId: 1, shiftKey: true }));
  const wheel = (by) => canvas.dispatchEvent(
    new WheelEvent('wheel', { ...at(500, 200), deltaY: by, ctrlKey: true }));
  canvas.setPointerCapture = () => {};
  if (kind === 'pan') point('pointerdown', 600, 200);
  let last = 0;
  for (let n = 0; n <= frames; n++) {
    const now = await new Promise(requestAnimationFrame);
    if (last) times.push(now - last);
    last = now;
    if (kind === 'pan') point('pointermove', 600 - 2 * n, 200 + n / 2);
    else wheel(n < frames / 2 ? -6 : 6);
  }
  if (kind === 'pan') point('pointerup', 0, 0);
  const mean = times.reduce((sum, one) => sum + one, 0) / times.length;
  return [mean, times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)]];
}"""


def fill_curves(folder: Path) -> None:
    seen = Seen(folder)
    job = seen.submit("curves", [{"lr": 0.001 * (n + 1), "seed": n % 5} for n in range(RUNS)])
    for index in range(RUNS):
        dice, value, points = random.Random(index), 2.0 + index / 100, []
        for step in range(POINTS):
            value = value * 0.9996 + dice.gauss(0, 0.02)
            points.append(Point(step, 1.79e9 + step, {"accuracy": value}))
        seen.claim(job, index)
        seen.end(job, index, "done", seen.curve(job, index, points))


def measure_moving(page: Any, address: str) -> tuple[float, float, float, float]:
    """(ms of a frame on average, of one in twenty at least, of the page's own work in it, of the browser's
    CPU time): the worse of pan and zoom."""
    page.goto(f"{address}#/sweep/curves/curves")
    page.get_by_text(f"{RUNS} curves, {RUNS * POINTS:,} points").wait_for(timeout=300_000)
    page.wait_for_timeout(1000)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})  # the thread's own time, not the clock's
    found = []
    for kind in ("pan", "zoom"):
        own, spent = _own(tools), _cpu(os.getpid())
        frame, slow = page.evaluate(MOVE, [kind, FRAMES])
        found.append((frame, slow, (_own(tools) - own) / FRAMES, (_cpu(os.getpid()) - spent) / FRAMES))
        page.wait_for_timeout(700)
        page.keyboard.press("0")
    frame, slow, work, cpu = (max(one) for one in zip(*found, strict=True))
    return frame, slow, work, cpu


def _own(tools: Any) -> float:
    """Milliseconds that the page's main thread has worked."""
    metrics = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000


def _cpu(root: int) -> float:
    """Milliseconds of CPU time of all that this process has started and that still runs."""
    children: dict[int, list[tuple[int, float]]] = {}
    tick = 1000 / os.sysconf("SC_CLK_TCK")
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        spent = (int(fields[11]) + int(fields[12])) * tick
        children.setdefault(int(fields[1]), []).append((int(path.parent.name), spent))
    total, left = 0.0, [root]
    while left:
        for pid, spent in children.get(left.pop(), []):
            total += spent
            left.append(pid)
    return total
