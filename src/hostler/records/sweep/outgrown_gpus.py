"""GPUs that are too small for a sweep: two of its runs were out of memory on such a GPU, and none is done.

A record names a run and the size of the GPU, and counts for the code that it was learned with. It is put if
absent, and never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hostler.records import layout
from hostler.records.body import Record, decode, encode, taken_apart
from hostler.spec.job import LARGER
from hostler.spec.states import DONE
from hostler.store import Store

VERSION = 1
ENOUGH = 2  # runs


def largest(store: Store, sweep: str, code: str) -> int:
    """Bytes of the largest GPU that is too small with this code; 0 where none is known to be."""
    return agreed(_sizes(store, sweep, code))


def agreed(sizes: Mapping[str, int]) -> int:
    """Bytes that so many runs found too few; one alone may be larger than the others. Pure."""
    return sorted(sizes.values(), reverse=True)[ENOUGH - 1] if len(sizes) >= ENOUGH else 0


def learn(store: Store, sweep: str, code: str, size: int, run: str) -> None:
    """Write down the size of a GPU that was too small for a run, unless that is known."""
    while size > _sizes(store, sweep, code).get(run, 0):
        n = 1 + max(_numbers(store, sweep), default=0)
        record = {"version": VERSION, "code": code, "gpu_memory": size, "run": run}
        if store.put(layout.outgrown_gpu(sweep, n), encode(record), if_absent=True):
            return


def is_too_small(size: int, ends: Iterable[Record]) -> bool:
    """Whether no run of a sweep is done on a GPU of this size, nor on a smaller one. Pure."""
    done = (end.get("gpu") or {} for end in ends if end.get("state") == DONE)
    return not any(0 < int(gpu.get("memory") or 0) <= size * LARGER for gpu in done)


def _sizes(store: Store, sweep: str, code: str) -> dict[str, int]:
    """run → bytes of the largest GPU that was too small for it."""
    sizes: dict[str, int] = {}
    for n in _numbers(store, sweep):
        key = layout.outgrown_gpu(sweep, n)
        record = decode(store.get(key).data, key)
        with taken_apart(key):
            if record["version"] == VERSION and record["code"] == code:
                run, size = str(record["run"]), int(record["gpu_memory"])
                sizes[run] = max(size, sizes.get(run, 0))
    return sizes


def _numbers(store: Store, sweep: str) -> list[int]:
    """Numbers of the records, in order; a stray file among them has none."""
    names = (
        entry.key.rsplit("/", 1)[1].removesuffix(".json") for entry in store.list(layout.outgrown_gpus(sweep))
    )
    return sorted(n for name in names for n in layout.numbers(name) or ())
