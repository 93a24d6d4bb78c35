"""Commands that read a sweep of ended runs: the requests that each makes, and how its time and memory grow.

python benchmarks/readers.py      the table of requests in docs/scale.md
python benchmarks/readers.py --packed 100000 1000000    CPU seconds and megabytes of each
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import bench_status
import ended_sweep
from row import Row

from hostler.analysis.board.live import LiveStore
from hostler.records.packs.packed_store import open_at, open_store
from hostler.settings import Timing
from hostler.store import Blob
from hostler.store.memory import MemoryStore, shared_memory
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder

RUN = f"{ended_sweep.NAME}/{ended_sweep.RUN}"
PLAN = "plan sweep.yaml"
UI = "ui"  # the first look of the dashboard, as far as it is over by itself
LOOK = "a worker looks at all runs"
ALL = ("status", f"best {ended_sweep.NAME}", f"df {ended_sweep.NAME}", PLAN, UI)
ONE = (f"show {RUN}", f"logs {RUN}", f"pull {RUN} --to pulled -y")
COUNTED = (1_000, 4_000)  # runs of the table of requests
COMMAND = "import sys; from hostler.cli.main import main; sys.argv[0] = 'hostler'; main()"
HERE = "import sys; sys.path.insert(0, sys.argv[1]); import readers"
TIMES = 3  # processes of which the least counts
MANY = 100_000  # runs from which on one process is enough


def title(words: str) -> str:
    """A command as people type it, of any sweep."""
    if words == LOOK:
        return words
    words = words.removesuffix(" --to pulled -y").replace(RUN, f"SWEEP/{ended_sweep.RUN}")
    return f"hostler {words}".replace(f" {ended_sweep.NAME}", " SWEEP")


def requests(count: int, folder: Path, *, packed: bool) -> dict[str, int]:
    """Requests that each command makes to a bucket with so many ended runs; `folder` is an empty one."""
    name = f"{folder.name}-{count}-{packed}"
    store = shared_memory(name)
    ended_sweep.end_all(store, ended_sweep.submit(store, folder, count), packed=packed)
    found = {words: _asked(store, f"memory:{name}", words, folder) for words in (*ALL, *ONE)}
    store.delete(*[entry.key for entry in store.list("")])  # it stays for as long as the process
    return found


def _asked(store: MemoryStore, url: str, words: str, folder: Path) -> int:
    asked: list[str] = []
    store.before = lambda operation, key: asked.append(operation)
    if words == UI:
        look_as_dashboard(url)
    else:
        _invoke([*words.split(), "--store", url], folder)
    store.before = None
    return len(asked)


def bytes_of_one(count: int, folder: Path) -> dict[str, int]:
    """Bytes that each command about one run reads of a packed sweep of so many; `folder` is an empty one."""
    name = f"{folder.name}-{count}"
    store, read = shared_memory(name), list[int]()
    ended_sweep.seal_one(store, ended_sweep.submit(store, folder, count))
    get = store.get

    def counted(key: str, *, start: int = 0, end: int | None = None) -> Blob:
        blob = get(key, start=start, end=end)
        read.append(len(blob.data))
        return blob

    store.get = counted  # type: ignore[method-assign]
    found = dict[str, int]()
    for words in ONE:
        read.clear()
        _invoke([*words.split(), "--store", f"memory:{name}"], folder)
        found[words] = sum(read)
    store.delete(*[entry.key for entry in store.list("")])
    return found


def _invoke(words: Sequence[str], folder: Path) -> None:
    from click.testing import CliRunner  # only where the store is in this process

    from hostler.cli.main import cli

    with _inside(folder):
        answer = CliRunner().invoke(cli, words)
    if answer.exit_code:
        raise RuntimeError(f"{words}: {answer.output}")


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """In the project, with a cache of its own."""
    before, cache = Path.cwd(), os.environ.get("HOSTLER_CACHE")
    os.chdir(folder)
    os.environ["HOSTLER_CACHE"] = tempfile.mkdtemp(dir=folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.pop("HOSTLER_CACHE")
        if cache is not None:
            os.environ["HOSTLER_CACHE"] = cache


def request_table(few: dict[str, int], many: dict[str, int]) -> str:
    """The table in docs/scale.md."""
    lines = [f"| command | {COUNTED[0]:,} runs | {COUNTED[1]:,} runs |", "|---|---|---|"]
    lines += [f"| `{title(words)}` | {few[words]} | {many[words]} |" for words in (*ALL, *ONE)]
    return "\n".join(lines)


def look_as_dashboard(url: str) -> None:
    live = LiveStore(open_at(url), time.monotonic)
    live.look()
    if live.trouble or not live.sweeps[ended_sweep.NAME].whole:
        raise RuntimeError(live.trouble or "not all of it was read")


def look_as_worker(url: str) -> None:
    """As a worker does that finds nothing: every name of the sweep."""
    finder = Finder(open_store(url), Claimant("w"), Timing(), time.monotonic)
    if finder.find(lambda ask: True, lambda ask: True, whole=True).taken:
        raise RuntimeError("a run was left")


def growth(few: int, many: int, *, packed: bool) -> list[Row]:
    """Each command over `few` and over `many` ended runs in a folder: what reads all of them may grow with
    their number, what is about one run may not."""
    used = {count: measured(count, packed=packed) for count in (few, many)}
    runs = "packed runs" if packed else "ended runs"
    rows: list[Row] = []
    for words in used[few]:
        times = 1 if words in ONE else many / few
        (seconds, megabytes), (more_seconds, more_megabytes) = used[few][words], used[many][words]
        name = f"{title(words)}: {many:,} {runs}, to {times:g} x {few:,}"
        rows += [
            Row(f"{name}: CPU time", more_seconds, seconds * times, _bound(words, packed=packed), "s"),
            Row(f"{name}: memory", more_megabytes, megabytes * times, _bound(words, packed=packed), "MB"),
        ]
    return rows


def _bound(words: str, *, packed: bool) -> float | None:
    """A tenth of the runs is so cheap that ten times it is hardly reached; of many it is: at most linear."""
    if words in ONE:
        return 1.45
    if packed:
        return 1.1
    return 0.33 if words in (PLAN, UI) else 0.2  # these two load little before they read


def measured(count: int, *, packed: bool) -> dict[str, tuple[float, float]]:
    """command -> CPU seconds and megabytes of its process."""
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        folder = Path(name)
        store = open_store(str(folder / "store"))
        ended_sweep.end_all(store.inner, ended_sweep.submit(store, folder, count), packed=packed)
        return {words: _used(words, folder, count) for words in (*ALL, LOOK, *ONE)}


def _used(words: str, folder: Path, count: int) -> tuple[float, float]:
    url, times = str(folder / "store"), 1 if count >= MANY else TIMES
    with _inside(folder):
        if words in (UI, LOOK):
            look = look_as_dashboard if words == UI else look_as_worker
            code, given = f"{HERE}; readers.{look.__name__}(sys.argv[2])", [str(Path(__file__).parent), url]
        else:
            code, given = COMMAND, [*words.split(), "--store", url]
        return bench_status.least(code, given, times)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("counts", type=int, nargs="*", help="ended runs")
    asked.add_argument("--packed", action="store_true")
    given = asked.parse_args()
    for count in given.counts:
        for words, (seconds, megabytes) in measured(count, packed=given.packed).items():
            print(f"{count} {title(words)}: {seconds:.2f} s, {megabytes:.0f} MB", flush=True)
    if not given.counts:
        with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
            found = [
                requests(n, Path(folder), packed=given.packed)
                for n, folder in zip(COUNTED, (few, many), strict=True)
            ]
        print(request_table(*found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
