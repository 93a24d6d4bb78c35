"""`hostler ui` as a process of its own, for tests that open it in a browser; what its table shows there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser import Tab
from cli_world import SOURCE

ROW = ".grid .body .row"
# Moments and the store's own place are left out of pictures.
CALM = """() => {
  const moments = 'time, #store, #live, .worker header span:last-child';
  for (const one of document.querySelectorAll(moments)) one.style.visibility = 'hidden';
  for (const one of document.querySelectorAll('.store')) one.textContent = '.hostler';
  document.activeElement?.blur();
}"""


@contextmanager
def board(store: str, *options: str, **variables: str) -> Iterator[str]:
    """`hostler ui` on a store, until the block ends; its address."""
    words = [sys.executable, "-m", "hostler", "ui", "--store", store, "--no-browser", "--port", "0", *options]
    state = str(Path(store).parent / "state")
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "XDG_STATE_HOME": state, **variables}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)


def names(tab: Tab) -> list[str]:
    """Runs that the table shows, in its order."""
    return [one.strip() for one in tab.page.locator(f"{ROW} .cell:nth-child(2)").all_inner_texts()]


def workers_of(cache: str) -> list[int]:
    """Workers that a retry has started here; they end by themselves."""
    mark = f"HOSTLER_CACHE={cache}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found
