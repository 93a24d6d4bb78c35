"""The tracked objects at the best value of a metric: kept when it is logged, shown at the end.

Who logs waits for a copy in memory and no longer. While one is being written the newest waits; an older one
that waits goes. A checkpoint that names a best one is written after that one, or one that is better still: a
run that goes on from it has the state, or comes by it again.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import Mark
from hostler.sdk.checkpoint.best import Best
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.saving import KEPT

LONGEST = 100  # letters of a folder's name


class Bests:
    """`folder` has a place for each metric."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        self._made: dict[str, Checkpointer] = {}
        self._known: dict[str, set[str]] = {}
        self._last: dict[str, int] = {}  # what the newest one of a metric can be waited for with

    def keep(self, best: Best, place: str, tracked: Mapping[str, Any]) -> None:
        """Keep the tracked objects as they are now."""
        checkpointer = self._made.get(best.metric)
        if checkpointer is None:
            checkpointer = Checkpointer(self._folder / place, policy=KEPT, say=self._say)
            self._made[best.metric] = checkpointer
        known = self._known.setdefault(best.metric, set())
        checkpointer.track(**{name: one for name, one in tracked.items() if name not in known})
        known.update(tracked)
        given = checkpointer.follow(best.number, {"metric": best.metric, **best.state()})
        if given is not None:
            self._last[best.metric] = given

    def settled(self) -> Callable[[], None]:
        """Something that returns once all that are kept by now, or better ones, are on the disk."""
        wanted = [(self._made[metric], given) for metric, given in self._last.items()]

        def wait() -> None:
            for checkpointer, given in wanted:
                checkpointer.wait(number=given)

        return wait

    def close(self) -> None:
        for checkpointer in self._made.values():
            checkpointer.close()


def places(metrics: Iterable[str]) -> dict[str, str]:
    """metric → the name of its folder: each has its own, whatever it is called."""
    found: dict[str, str] = {}
    for metric in metrics:
        name = metric.replace("/", "-")
        plain = name.isprintable() and name.strip(".") and len(name.encode()) <= LONGEST
        if not plain or name in found.values():
            name = f"{zlib.crc32(metric.encode('utf-8', 'surrogatepass')):08x}"
        found[metric] = name
    return found


def forget_later(folder: Path, best: Mapping[str, Best]) -> None:
    """A run goes on from where these were the best: what came after them comes again, or is not so."""
    for metric, place in places(best).items():
        marks, named = saved_folder.committed(folder / place), Mark(best[metric].number)
        for mark in marks if named in marks else ():
            if mark > named:
                saved_folder.remove(folder / place, mark)


def there(folder: Path, best: Mapping[str, Best]) -> list[Best]:
    """Bests whose states are in the folder."""
    return [
        best[metric]
        for metric, place in places(best).items()
        if Mark(best[metric].number) in saved_folder.committed(folder / place)
    ]


def clear(folder: Path, best: Path) -> None:
    """Remove the library's checkpoints and the best states; a script's own files stay."""
    for mark in saved_folder.marks(folder):
        saved_folder.remove(folder, mark)
    shutil.rmtree(best, ignore_errors=True)


def show(folder: Path, best: Mapping[str, Best], target: Path) -> Sequence[Best]:
    """Copy the best state of each metric to `target`, without its number. Returns those that are not there:
    the newest one stands in for them."""
    missing = []
    for metric, place in places(best).items():
        marks, named = saved_folder.committed(folder / place), Mark(best[metric].number)
        if best[metric].value is not None and marks:
            shutil.rmtree(target / place, ignore_errors=True)
            shutil.copytree(folder / place / (named if named in marks else marks[0]).name, target / place)
            missing += [] if named in marks else [best[metric]]
    return missing
