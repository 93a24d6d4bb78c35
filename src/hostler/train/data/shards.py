"""`tar/PATH`, `tar/gs://bucket/prefix`: pictures in tar shards, as WebDataset lays them out.

Shards are read in parts of a few megabytes, each of examples that follow each other. An order takes the parts
at random, and their examples up to a window of parts later: so that a bucket is asked for each part once, and
batches are still mixed. It is the same for a folder and a bucket, any number of threads, and from any step.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import torch

from hostler.errors import DamagedError, MachineError, MissingError, SpecError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.store.base import Entry, NotFound, Store, arriving
from hostler.store.registry import is_folder, open_store
from hostler.train.config import Config
from hostler.train.data import pictures, tar_index
from hostler.train.data.encoded import Encoded
from hostler.train.data.order import mixed, shuffled
from hostler.train.data.sources import folder, wanted
from hostler.train.data.split import Data
from hostler.train.data.tar_index import Example, damaged
from hostler.train.library import need

PART = 2 << 20  # bytes that are read at a time
WINDOW = 64  # parts whose examples are mixed
HELD = WINDOW * 3 // 2  # parts that are in memory: those of a window, and of the batches read ahead
PIECE = {
    True: 1 << 12,
    False: 1 << 23,
}  # bytes of a shard that are read to find its headers: in a folder, or not
INDEX = ".tar-index"  # in data_dir


def load(config: Config, name: str) -> Data:
    need("PIL", "pillow", config.dataset)
    store = _opened(config, name)
    shards = {ours: _of_split(store, theirs) for ours, theirs in wanted(config).items()}
    splits = {ours: Shards(store, found, _indexed(store, found, config)) for ours, found in shards.items()}
    for ours, one in splits.items():
        if not len(one):
            raise SpecError(f"split {ours!r} of {config.dataset} has no examples")
    classes = int(splits["train"].targets.max()) + 1
    for ours, one in splits.items():
        worst = int(one.targets.argmax())
        if int(one.targets[worst]) >= classes:
            raise SpecError(
                f"split {ours!r}: {one.name(worst)} is of the class {int(one.targets[worst])}",
                hint=f"the classes of train are 0 to {classes - 1}",
            )
    return pictures.build(splits, tuple(map(str, range(classes))), config)


@dataclass(frozen=True)
class Part:
    """Bytes of a shard with examples that follow each other."""

    shard: int
    start: int
    end: int


class Shards(Encoded):
    """Pictures of several shards, in the order of their names."""

    def __init__(self, store: Store, shards: Sequence[Entry], found: Sequence[Sequence[Example]]) -> None:
        self._store, self._shards = store, shards
        self.forks = is_folder(store.url)
        flat = [(number, one) for number, inside in enumerate(found) for one in inside]
        self.targets = torch.tensor([one.target for _, one in flat], dtype=torch.long)
        self._starts = torch.tensor([one.start for _, one in flat], dtype=torch.long)
        self._sizes = torch.tensor([one.size for _, one in flat], dtype=torch.long)
        self._parts, counts = parts(flat)
        self._part_of = torch.repeat_interleave(
            torch.arange(len(counts)), torch.tensor(counts, dtype=torch.long)
        )
        self._held = HeldParts(self._fetched, HELD)
        self._order = lru_cache(maxsize=4)(lambda seed, passes: nearly(counts, WINDOW, seed, passes))

    def read(self, chosen: Sequence[int]) -> list[bytes]:
        places = torch.as_tensor(chosen, dtype=torch.long)
        rows = (self._part_of[places], self._starts[places], self._sizes[places])
        found = []
        for part, start, size in zip(*(row.tolist() for row in rows), strict=True):
            begin = start - self._parts[part].start
            found.append(self._held.get(part)[begin : begin + size])
        return found

    def name(self, index: int) -> str:
        shard = self._shards[self._parts[int(self._part_of[index])].shard]
        return f"the picture at byte {int(self._starts[index]):,} of {self._where(shard)}"

    def shuffled(self, count: int, seed: int, passes: int) -> torch.Tensor:
        return self._order(seed, passes)

    def _fetched(self, number: int) -> bytes:
        part = self._parts[number]
        shard = self._shards[part.shard]
        where = self._where(shard)
        try:
            blob = self._store.get(shard.key, start=part.start, end=part.end)
        except NotFound:
            raise MissingError(f"{where} is gone", hint="the run goes on where it is again") from None
        if shard.etag and blob.etag and blob.etag != shard.etag:
            raise DamagedError(f"{where} was replaced during the run", hint="start again: it is read anew")
        if len(blob.data) != part.end - part.start:
            raise damaged(where, f"it ends before byte {part.end:,}")
        return blob.data

    def _where(self, shard: Entry) -> str:
        return f"{self._store.url}/{shard.key}"


def parts(flat: Sequence[tuple[int, Example]]) -> tuple[list[Part], list[int]]:
    """Parts of about PART bytes, and how many examples each has. Pure."""
    found, counts = list[Part](), list[int]()
    for shard, one in flat:
        end = one.start + one.size
        if found and found[-1].shard == shard and end - found[-1].start <= PART:
            found[-1] = Part(shard, found[-1].start, max(end, found[-1].end))
            counts[-1] += 1
        else:
            found.append(Part(shard, one.start, end))
            counts.append(1)
    return found, counts


def nearly(counts: Sequence[int], window: int, seed: int, passes: int) -> torch.Tensor:
    """All examples of parts that have so many: parts at random, each example moved up to a window of parts
    back. Few parts are shuffled as a whole. Pure."""
    sizes = torch.tensor(counts, dtype=torch.long)
    total = int(sizes.sum())
    if len(counts) <= window:
        return shuffled(total, seed, passes)
    chance = torch.Generator().manual_seed(mixed(seed, passes))
    taken = torch.randperm(len(counts), generator=chance)
    firsts = sizes.cumsum(0) - sizes
    begins = sizes[taken].cumsum(0) - sizes[taken]
    places = torch.repeat_interleave(firsts[taken] - begins, sizes[taken]) + torch.arange(total)
    back = torch.rand(total, generator=chance, dtype=torch.float64) * (total * window / len(counts))
    return places[(torch.arange(total) + back).argsort(stable=True)]


class HeldParts:
    """Parts that were read last. Threads that want the same one wait for whoever reads it."""

    def __init__(self, fetch: Callable[[int], bytes], most: int) -> None:
        self._fetch, self._most = fetch, most
        self._lock = threading.Lock()
        self._held: OrderedDict[int, Future[bytes]] = OrderedDict()

    def get(self, number: int) -> bytes:
        with self._lock:
            found = self._held.get(number)
            mine = found is None
            if found is None:
                found = self._held[number] = Future()
                if len(self._held) > self._most:
                    self._held.popitem(last=False)
            else:
                self._held.move_to_end(number)
        if mine:
            self._read(number, found)
        return found.result()

    def _read(self, number: int, found: Future[bytes]) -> None:
        try:
            found.set_result(self._fetch(number))
        except BaseException as error:  # whoever waits for it gets it, too; the next one tries again
            with self._lock:
                self._held.pop(number, None)
            found.set_exception(error)


def _opened(config: Config, name: str) -> Store:
    if "://" in name:
        return open_store(name)
    return open_store(
        os.fspath(folder(config, name, "tar/PATH, in data_dir, or tar/gs://bucket/prefix").absolute())
    )


def _of_split(store: Store, split: str) -> list[Entry]:
    """Shards `<split>/….tar`, `<split>-0001.tar` or `<split>.tar`."""
    word = re.escape(split)
    entries = [one for one in store.list("") if one.key.endswith((".tar", ".tgz", ".tar.gz"))]
    found = [
        one for one in entries if re.fullmatch(rf"{word}(/.+|[-_.]?[0-9][^/]*)?\.(tar|tgz|tar\.gz)", one.key)
    ]
    if not found:
        firsts = sorted({re.split(r"/|[-_.]?[0-9]|\.", one.key, maxsplit=1)[0] for one in entries})
        hint = did_you_mean(split, firsts, f"{split}-0000.tar, or {split}/0000.tar")
        raise SpecError(f"{store.url} has no shards of the split {split!r}", hint)
    _check_names(store, {one.key for one in entries})
    return found


def _check_names(store: Store, keys: set[str]) -> None:
    """No shard of a folder is passed over for its name, or because it is a link."""
    if not is_folder(store.url):
        return
    root = Path(store.url)
    for path in sorted(root.rglob("*.tar")):
        if path.relative_to(root).as_posix() not in keys:
            raise SpecError(
                f"shard {str(path)!r} is passed over",
                hint="names of shards are letters, digits and ._=+,@-, and links are not followed",
            )


def _indexed(store: Store, shards: Sequence[Entry], config: Config) -> list[list[Example]]:
    """What each shard holds; several are read at a time."""
    with ThreadPoolExecutor(max(1, config.num_workers), "index") as pool:
        return list(pool.map(lambda one: _index(store, one, config), shards))


def _index(store: Store, shard: Entry, config: Config) -> list[Example]:
    """From data_dir, where this shard was read before."""
    said = "\0".join((store.url, shard.key, str(shard.size), shard.etag, config.data_target or ""))
    path = Path(config.data_dir, INDEX, f"{hashlib.sha256(said.encode()).hexdigest()}.json")
    try:
        kept = tar_index.read_back(path.read_bytes(), shard.size)
    except OSError:
        kept = None
    if kept is not None:
        return kept
    reader = _InPieces(store, shard, PIECE[is_folder(store.url)])
    found = tar_index.examples(reader, shard.size, f"{store.url}/{shard.key}", config.data_target)
    try:
        with arriving(path) as file:
            file.write(tar_index.written(found))
    except MachineError:
        pass  # nothing can be written there: it is read again next time
    return found


class _InPieces:
    """Bytes of a shard from any place on, read in pieces."""

    def __init__(self, store: Store, shard: Entry, piece: int) -> None:
        self._store, self._shard, self._piece = store, shard, piece
        self._start, self._data = 0, b""

    def __call__(self, start: int, count: int) -> bytes:
        begin = start - self._start
        if begin < 0 or begin + count > len(self._data):
            end = min(start + max(count, self._piece), self._shard.size)
            self._start, self._data, begin = start, self._fetched(start, end), 0
        return self._data[begin : begin + count]

    def _fetched(self, start: int, end: int) -> bytes:
        if end <= start:
            return b""
        try:
            return self._store.get(self._shard.key, start=start, end=end).data
        except NotFound:
            raise MissingError(f"{self._store.url}/{self._shard.key} is gone") from None
