"""Which files of a checkpoint folder belong together, and which of them are complete. Pure.

The files of a folder are of six kinds:

    library    checkpoints of the library, complete by their COMMIT; the newest of each place
    declared   files whose writer says that they are complete: replaced by rename, or marked when done
    units      files whose names carry a counter, such as `checkpoint-20/` and `epoch=3.ckpt`: written once,
               so each is complete by itself once it is at rest, or once its writer has begun a later one.
               Files with the same counter are one unit.
    lump       everything else: rewritten under the same names, so complete only if all of it is at rest
    best       the same of files named so: written whenever a value is better, at moments of their own
    logs       files that are appended to all the time, such as `train.log`: complete as they are, since a
               shorter log is a log, too. One that has come to rest belongs to the lump.

A unit whose file changes after it was at rest was not written once: it belongs to the lump from then on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from hostler.frozen import dataclass
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import COMMIT, Mark
from hostler.records.checkpoint.tree import FileRow, TreeScan

NOTHING = TreeScan(())
LUMP, BEST = "", "best"  # keys of both, where units have theirs

_WORDS = {
    "checkpoint": ("checkpoint", "checkpoints", "ckpt", "chkpt", "snapshot"),
    "model": (
        "model",
        "weights",
        "state",
        "optimizer",
        "optim",
        "scheduler",
        "ema",
        "generator",
        "discriminator",
    ),
    "epoch": ("epoch", "epochs", "ep"),
    "step": ("global_step", "global-step", "steps", "step", "iteration", "iterations", "iter", "iters", "it"),
    "update": ("updates", "update", "round", "rounds"),
}
_MEANING = {word: meaning for meaning, words in _WORDS.items() for word in words}
_COUNTER = re.compile(
    rf"(?<![a-z])({'|'.join(sorted(_MEANING, key=len, reverse=True))})[-_=. ]?(\d+)", re.IGNORECASE
)
_PARTS = {"model", "number"}
_BEST = re.compile(r"(?<![a-z])best(?![a-z])", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+)(?:\.[A-Za-z][\w.]*)?")  # 20/, 0005.pt
_LOG = re.compile(
    r".*\.(?:log|out|err|csv|tsv|jsonl|ndjson)|(?:.*[-_.])?(?:log|logs|history|metrics)\.txt|events\.out\.tfevents\..*",
    re.IGNORECASE,
)
_PART = re.compile(r"\d+[-_]?of[-_]?\d+", re.IGNORECASE)  # one of several files of the same moment
_VALUE = re.compile(r"(?<==)-?\d+(?:\.\d+)?(?:e-?\d+)?|(?<![\d.])-?\d+\.\d+", re.IGNORECASE)  # val_loss=0.12


@dataclass(frozen=True)
class Declared:
    """Word of a writer about its files, names from the checkpoint folder on."""

    names: tuple[str, ...] = ()  # files and folders that are complete whenever they are there
    scratch: tuple[str, ...] = ()  # being written: never part of a checkpoint
    marked: Mapping[str, str] = field(default_factory=dict)  # folder → file that completes a unit in it

    @classmethod
    def read(cls, note: Mapping[str, Any] | None) -> Declared:
        """The word as it stands in the handoff folder."""
        values = note or {}
        return cls(
            tuple(values.get("names", ())), tuple(values.get("scratch", ())), dict(values.get("marked", {}))
        )


@dataclass(frozen=True)
class Parts:
    """A scanned checkpoint folder, by kind."""

    library: TreeScan = NOTHING
    declared: TreeScan = NOTHING
    units: Mapping[str, TreeScan] = field(default_factory=dict)
    lump: TreeScan = NOTHING
    best: TreeScan = NOTHING
    logs: TreeScan = NOTHING

    @property
    def rewritten(self) -> dict[str, TreeScan]:
        """The files that are rewritten under the same names, by key."""
        return {LUMP: self.lump, BEST: self.best}

    @property
    def groups(self) -> dict[str, TreeScan]:
        """The files that must come to rest: units, lump and best."""
        return {**self.units, **{key: rows for key, rows in self.rewritten.items() if rows.rows}}

    @property
    def all(self) -> TreeScan:
        """All files that a checkpoint of the folder may hold."""
        return joined(self.progress, self.logs)

    @property
    def progress(self) -> TreeScan:
        """The files that a training may go on from: all but logs."""
        return joined(self.library, self.declared, *self.rewritten.values(), *self.units.values())


def parts(
    scanned: TreeScan,
    declared: Declared = Declared(),
    rewritten: Collection[str] = frozenset(),
    manifest: Callable[[FileRow], Mapping[str, int]] = lambda mark: {},
    growing: Collection[str] = frozenset(),
) -> Parts:
    """The files of a folder by kind; `rewritten` are keys of units that have changed after a rest, `growing`
    names of logs. `manifest`: names and sizes that the mark of a declared unit has for its files."""
    library, script = _library(scanned)
    marked = _marked(script, declared.marked, manifest)
    whole: list[FileRow] = []
    lump: list[FileRow] = []
    best: list[FileRow] = []
    logs: list[FileRow] = []
    units: dict[str, list[FileRow]] = {}
    for row in script:
        if _under(row.name, declared.scratch):
            continue
        unit = _marked_unit(row.name, declared.marked)
        if unit is not None:
            whole += [row] if unit in marked else []
        elif _under(row.name, declared.names):
            whole.append(row)
        elif row.name in growing:
            logs.append(row)
        elif (key := unit_of(row.name)) and key not in rewritten:
            units.setdefault(key, []).append(row)
        else:
            (best if _BEST.search(PurePosixPath(row.name).name) else lump).append(row)
    scans = {key: TreeScan(tuple(rows)) for key, rows in units.items()}
    kinds = (TreeScan(tuple(rows)) for rows in (lump, best, logs))
    return Parts(TreeScan(tuple(library)), TreeScan(tuple(whole)), scans, *kinds)


def unit_of(name: str) -> str:
    """The key of the unit that a file belongs to; empty for one of the lump. The topmost part of its path
    that carries a counter decides, so that whatever lies in `checkpoint-20/` is of that one unit."""
    above: list[str] = []
    for part in PurePosixPath(name).parts:
        if found := counters(part):
            return "/".join([*above, found])
        above.append(part)
    return ""


def folders_of(name: str) -> list[str]:
    """Folders of the unit that a file belongs to, from the one with the counter down; of one of the lump all
    that it lies in."""
    *above, _ = PurePosixPath(name).parts
    first = next((n for n, part in enumerate(above) if counters(part)), len(above) if unit_of(name) else 0)
    return ["/".join(above[:n]) for n in range(first + 1, len(above) + 1)]


def counters(name: str) -> str:
    """The counters that a name carries, in one spelling: `epoch=3,step=120`; empty without any."""
    bare = _PART.sub("", name)
    found = [(_MEANING[word.lower()], int(number)) for word, number in _COUNTER.findall(bare)]
    if not found and (alone := _NUMBER.fullmatch(bare)):
        found = [("number", int(alone[1]))]
    return ",".join(f"{meaning}={number}" for meaning, number in found)


def without_counters(name: str) -> str:
    """A name with `#` for its counters and for values such as a loss: the same for each save."""
    if _NUMBER.fullmatch(name):
        return re.sub(r"^\d+", "#", name)
    return _VALUE.sub("#", _COUNTER.sub(lambda found: f"{found[1]}#", name))


def may_be_part(key: str) -> bool:
    """Whether the number of a unit may be that of a part of one save (`model_0.pt`, `1/`)."""
    return bool(set(re.findall(r"(\w+)=\d", key)) & _PARTS)


def succeeded(units: Mapping[str, TreeScan], changed: Callable[[TreeScan], float]) -> set[str]:
    """Keys of units that their writer was done with: it has begun one with a higher counter, and nothing has
    happened to these since. `changed`: when a name came or went in their folders. A number that may be that
    of a part (`model_0.pt`, `1/`) is not a counter in this sense."""
    families: dict[str, list[tuple[list[int], str]]] = {}
    for key in units:
        numbers = [int(number) for number in re.findall(r"=(\d+)", key)]
        if not may_be_part(key):
            families.setdefault(re.sub(r"=\d+", "=", key), []).append((numbers, key))
    done: set[str] = set()
    for family in families.values():
        ordered = [key for _, key in sorted(family)]
        for key, later in pairwise(ordered):
            begun = min(row.mtime_ns for row in units[later].rows) / 1e9
            if max(units[key].newest, changed(units[key])) < begun:
                done.add(key)
    return done


def is_appended(before: FileRow, now: FileRow) -> bool:
    """Whether a file that is named like a log has grown."""
    grown = now.inode == before.inode and now.size > before.size and not now.link
    return grown and bool(_LOG.fullmatch(PurePosixPath(now.name).name))


def was_rewritten(before: TreeScan, now: TreeScan) -> bool:
    """Whether a file that had been at rest has other bytes now; files that came or went do not count."""
    rows = {row.name: row for row in now.rows}
    return any(rows.get(row.name, row) != row for row in before.rows)


def holds(now: TreeScan, before: TreeScan) -> bool:
    """Whether all these files are still there as they were."""
    return set(before.rows) <= set(now.rows)


def joined(*scans: TreeScan) -> TreeScan:
    rows = (row for scanned in scans for row in scanned.rows)
    return TreeScan(tuple(sorted(rows, key=lambda row: row.name)))


def _library(scanned: TreeScan) -> tuple[list[FileRow], list[FileRow]]:
    """The newest complete checkpoints of the library; the files that are not the library's."""
    newest: dict[str, Mark] = {}
    for row in scanned.rows:
        place = PurePosixPath(row.name)
        mark = saved_folder.mark_of(place.parent.name)
        if mark and place.name == COMMIT:
            above = str(place.parent.parent)
            newest[above] = max(newest.get(above, mark), mark)
    chosen = tuple(f"{'' if above == '.' else above + '/'}{mark.name}/" for above, mark in newest.items())
    whole = [row for row in scanned.rows if row.name.startswith(chosen)] if chosen else []
    return whole, [row for row in scanned.rows if not _is_of_library(row.name)]


def _is_of_library(name: str) -> bool:
    return any(saved_folder.mark_of(part) for part in PurePosixPath(name).parent.parts)


def _marked(
    rows: Sequence[FileRow], marked: Mapping[str, str], manifest: Callable[[FileRow], Mapping[str, int]]
) -> set[str]:
    """Declared units that are complete: they have their mark, and all files that it names. One that is being
    removed may have its mark to the last."""
    if not marked:
        return set()
    sizes = {row.name: row.size for row in rows}
    found = set()
    for row in rows:
        unit = _marked_unit(row.name, marked)
        if unit is not None and row.name == f"{unit}/{marked[unit.rpartition('/')[0]]}":
            wanted = manifest(row).items()
            if all(sizes.get(f"{unit}/{name}") == size for name, size in wanted):
                found.add(unit)
    return found


def _marked_unit(name: str, marked: Mapping[str, str]) -> str | None:
    """The sub-folder of a marked folder that a file lies in, if it carries a counter."""
    for folder in marked:
        below = name.removeprefix(f"{folder}/")
        first, inside, _ = below.partition("/")
        if below != name and inside and counters(first):
            return f"{folder}/{first}"
    return None


def _under(name: str, places: Collection[str]) -> bool:
    return any(name == place or name.startswith(f"{place}/") for place in places)
