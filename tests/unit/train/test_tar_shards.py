"""`tar/PATH`, `tar/gs://…`: pictures in shards of a folder or a bucket."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import servers
import tar_world
import train_world as world
from hostler.emulators.gcs import GcsEmulator
from hostler.errors import DamagedError, HostlerError, MissingError, SpecError, StoreError
from hostler.store.base import Blob
from hostler.store.folder import FolderStore
from hostler.store.registry import open_store
from hostler.train.data import shards, sources, tar_index
from hostler.train.data.feed import AheadFeed, Share
from hostler.train.data.order import ExampleOrder, shuffled
from hostler.train.data.pictures import Decoded
from hostler.train.data.shards import HeldParts, Shards, nearly
from hostler.train.data.split import Arrays, Data
from small_trainings import Place, place, same

__all__ = ["place"]
HERE = torch.device("cpu")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tar_world.write(tmp_path / "set", tar_world.dataset())


def load(name: str, data: Path, **given: object) -> Data:
    more = {"data_on_device": False, "image_size": 12, "data_dir": str(data), **given}
    return sources.load(world.config(dataset=f"tar/{name}", **more))


def batches(data: Data, steps: tuple[int, ...], threads: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    split = data.splits["train"]
    assert isinstance(split, Decoded)
    order = ExampleOrder(len(split), 5, 3, split.shuffled)
    feed = AheadFeed(split, order, Share(), HERE, threads, 40)
    found = [feed.at(step) for step in steps]
    feed.close()
    return found


def equal(
    one: list[tuple[torch.Tensor, torch.Tensor]], other: list[tuple[torch.Tensor, torch.Tensor]]
) -> bool:
    return all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in zip(one, other, strict=True))


def test_shards_of_a_folder_are_a_data_set(root: Path) -> None:
    data = load("set", root.parent, data_on_device=None, image_size=None)
    assert (data.input_shape, data.n_classes) == ((3, 16, 16), 3)
    assert {name: len(one) for name, one in data.splits.items()} == {"train": 24, "test": 6}
    train = data.splits["train"]
    assert isinstance(train, Arrays)
    assert train.y.tolist() == [number % 3 for number in range(24)]
    assert train.x.float().mean((2, 3)).argmax(1).tolist() == train.y.tolist()  # red, green, blue


def test_pictures_read_ahead_are_those_in_memory(root: Path) -> None:
    here, there = (load("set", root.parent, data_on_device=one).splits["train"] for one in (None, False))
    assert isinstance(here, Arrays) and isinstance(there, Decoded)
    assert torch.equal(here.x, there.gather(range(24), HERE)) and torch.equal(here.y, there.targets)
    assert torch.equal(there[-1][0], here.x[23])


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of two or three pictures, and windows of three parts."""
    monkeypatch.setattr(shards, "PART", 4000)
    monkeypatch.setattr(shards, "WINDOW", 3)
    monkeypatch.setattr(shards, "HELD", 7)


@pytest.mark.usefixtures("small_parts")
def test_bucket_gives_the_batches_of_a_folder_from_any_step(root: Path, gcs: GcsEmulator) -> None:
    url = f"gs://{servers.BUCKET}/pictures"
    for key, content in tar_world.dataset().items():
        open_store(url).put(key, content)
    from_start = batches(load("set", root.parent), (0, 1, 2, 3, 4, 5, 6), 0)
    assert sorted(y for _, batch in from_start[:5] for y in batch.tolist()) == sorted([0, 1, 2] * 8)
    assert not torch.equal(torch.cat([y for _, y in from_start[:5]]), torch.arange(24) % 3)
    bucket = load(url, root.parent)
    assert equal(batches(bucket, (0, 1, 2, 3, 4, 5, 6), 3), from_start)
    assert equal(batches(bucket, (4, 5, 6), 2), from_start[4:])


@pytest.mark.usefixtures("small_parts")
def test_training_takes_examples_in_the_order_of_parts(root: Path) -> None:
    made = world.parts(
        dataset="tar/set", data_dir=str(root.parent), image_size=12, data_on_device=False, model="tiny/lenet"
    )
    split = made.data.splits["train"]
    assert isinstance(split, Decoded) and isinstance(made.feed, AheadFeed)
    for passes in range(2):
        assert torch.equal(made.order.in_pass(passes), split.shuffled(24, 2, passes))
    assert not torch.equal(made.order.in_pass(0), shuffled(24, 2, 0))
    assert torch.equal(made.batch(0)[1], split.targets[made.order.at(0)])
    made.feed.close()


def test_shard_is_looked_through_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    look = tar_index.examples

    def examples(read: tar_index.Read, whole: int, shard: str, target: str | None) -> list[tar_index.Example]:
        looked.append(Path(shard).name)
        return look(read, whole, shard, target)

    monkeypatch.setattr(tar_index, "examples", examples)
    first = load("set", root.parent)
    assert sorted(looked) == ["0000.tar", "0001.tar", "0002.tar", "test-0000.tar"]
    looked.clear()
    again = load("set", root.parent)
    assert looked == [] and torch.equal(again.splits["train"].targets, first.splits["train"].targets)
    more = tar_world.tarred(tar_world.examples(range(30, 35)))
    (root / "train/0001.tar").write_bytes(more)
    assert len(load("set", root.parent).splits["train"]) == 21 and looked == ["0001.tar"]
    for kept in (root.parent / shards.INDEX).iterdir():
        kept.write_bytes(b"damaged")
    assert len(load("set", root.parent).splits["train"]) == 21 and len(looked) == 5


class Counting(FolderStore):
    """A folder that knows which bytes were asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: list[tuple[str, int, int | None]] = []

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        self.asked.append((key, start, end))
        return super().get(key, start=start, end=end)


def counted(root: Path) -> tuple[Counting, Shards]:
    store = Counting(root)
    config = world.config(dataset="tar/set", data_dir=str(root.parent))
    entries = shards._of_split(store, "train")
    made = Shards(store, entries, shards._indexed(store, entries, config))
    store.asked.clear()
    return store, made


@pytest.mark.usefixtures("small_parts")
def test_pass_reads_each_part_of_a_shard_once(root: Path) -> None:
    store, made = counted(root)
    order = ExampleOrder(len(made), 5, 3, lambda count, seed, passes: made.shuffled(count, seed, passes))
    for step in range(order.steps):
        made.read(order.at(step).tolist())
    assert len(store.asked) > 6 and set(Counter(store.asked).values()) == {1}
    assert all(end is not None and end - start <= 4000 for _, start, end in store.asked)


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_parts_moves_examples_a_window_at_most(seed: int) -> None:
    counts = [5] * 200
    order = nearly(counts, 8, seed, 0)
    assert sorted(order.tolist()) == list(range(1000))
    assert torch.equal(order, nearly(counts, 8, seed, 0))
    assert not torch.equal(order, nearly(counts, 8, seed, 1))
    assert not torch.equal(order, nearly(counts, 8, seed + 1, 0))
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, part in enumerate((order // 5).tolist()):
        first.setdefault(part, at)
        last[part] = at
    live = [sum(first[part] <= at <= last[part] for part in range(200)) for at in range(0, 1000, 10)]
    assert max(live) <= 8 + 3, "parts in memory at a time"
    assert len(set((order[200:210] // 5).tolist())) > 4, "and they are mixed"


def test_few_parts_are_shuffled_as_a_whole() -> None:
    assert torch.equal(nearly([5] * 8, 8, 1, 2), shuffled(40, 1, 2))


def test_threads_that_want_one_part_read_it_once() -> None:
    asked: list[int] = []
    come, go = threading.Event(), threading.Event()

    def fetch(number: int) -> bytes:
        asked.append(number)
        come.set()
        assert go.wait(20)
        return b"part"

    held, got = HeldParts(fetch, 2), list[bytes]()
    threads = [threading.Thread(target=lambda: got.append(held.get(7))) for _ in range(3)]
    for one in threads:
        one.start()
    assert come.wait(20)
    go.set()
    for one in threads:
        one.join()
    assert got == [b"part"] * 3 and asked == [7]
    assert [held.get(number) for number in (8, 7, 9, 7, 8)] and asked == [7, 8, 9, 8], "the oldest goes first"


def test_part_that_could_not_be_read_is_asked_for_again() -> None:
    answers: list[object] = [StoreError("the disk is slow"), b"part"]

    def fetch(number: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bytes(answer)  # type: ignore[call-overload, no-any-return]

    held = HeldParts(fetch, 2)
    with pytest.raises(StoreError, match="slow"):
        held.get(1)
    assert held.get(1) == b"part"


def test_training_from_shards_has_the_bits_of_one_from_a_folder(place: Place) -> None:
    pictures = [(number, f"train/{tar_world.CLASSES[number % 3]}/{number:06d}.jpg") for number in range(18)]
    pictures.sort(key=lambda one: one[1])
    folder = {path: tar_world.jpeg(number) for number, path in pictures}
    tar_world.write(place.folder / "data/pets", folder)
    numbers = [number for number, _ in pictures]
    parts = {
        f"train/{n}.tar": tar_world.tarred(tar_world.examples(numbers[n * 9 : n * 9 + 9], cls=n == 0))
        for n in (0, 1)
    }
    tar_world.write(place.folder / "data/tars", parts)
    more = {"model": "tiny/lenet", "image_size": 12, "augment": ["flip"], "data_on_device": False,
            "data_splits_map": {"train": "train"}}  # fmt: skip
    place.train(dataset="tar/tars", num_workers=2, **more)
    read = place.weights()
    place.train(dataset="folder/pets", num_workers=0, output_dir="out2", **more)
    assert same(read, place.weights("../out2/model.safetensors"))


def test_name_of_a_member_is_never_a_path(root: Path) -> None:
    outside = root.parent / "outside"
    names = ("../../outside", str(outside), "deep/../../x", "/etc/passwd")
    odd = [
        (f"{name}.{end}", data) for name in names for end, data in (("jpg", tar_world.jpeg(1)), ("cls", b"1"))
    ]
    (root / "train/0009.tar").write_bytes(tar_world.tarred(odd))
    before = set(root.parent.rglob("*"))
    train = load("set", root.parent, data_on_device=None).splits["train"]
    assert len(train) == 24 + len(names)
    new = set(root.parent.rglob("*")) - before
    assert {path.relative_to(root.parent).parts[0] for path in new} == {shards.INDEX}


def cut(root: Path) -> None:
    os.truncate(root / "train/0001.tar", 5000)


def bent(root: Path) -> None:
    path = root / "train/0001.tar"
    data = bytearray(path.read_bytes())
    data[3] ^= 8
    path.write_bytes(data)


def unclassed(root: Path) -> None:
    (root / "train/0001.tar").write_bytes(tar_world.tarred([("7.jpg", b"x")]))


def unknown(root: Path) -> None:
    (root / "test-0000.tar").write_bytes(tar_world.tarred([("7.jpg", tar_world.jpeg(1)), ("7.cls", b"8")]))


def undrawn(root: Path) -> None:
    (root / "train/0001.tar").write_bytes(tar_world.tarred([("7.jpg", b"no picture"), ("7.cls", b"1")]))


def linked(root: Path) -> None:
    (root / "train/0003.tar").symlink_to(root / "train/0001.tar")


def packed(root: Path) -> None:
    (root / "train/0001.tar").rename(root / "train/0001.tar.gz")
    (root / "train/0001.tar.gz").write_bytes(b"\x1f\x8b" + bytes(600))


def endless(root: Path) -> None:
    """A picture of 13,000 × 13,000 by its header, in 700 bytes."""
    data = tar_world.jpeg(1)
    at = data.index(b"\xff\xc0") + 5
    large = data[:at] + (13_000).to_bytes(2, "big") * 2 + data[at + 4 :]
    (root / "train/0001.tar").write_bytes(tar_world.tarred([("7.jpg", large), ("7.cls", b"1")]))


BAD: dict[str, tuple[Callable[[Path], object], type[HostlerError], str]] = {
    "cut": (cut, DamagedError, "set/train/0001.tar is damaged: it breaks off"),
    "bent": (bent, DamagedError, "set/train/0001.tar is damaged: no header of tar is at byte 0"),
    "without a class": (unclassed, SpecError, "set/train/0001.tar: '7' has a picture and no class"),
    "a class of test alone": (unknown, SpecError, "test-0000.tar is of the class 8"),
    "no picture": (undrawn, DamagedError, "set/train/0001.tar cannot be read as a picture"),
    "too many pixels": (endless, DamagedError, "set/train/0001.tar cannot be read as a picture: 13000×13000"),
    "a link": (linked, SpecError, "set/train/0003.tar' is passed over"),
    "compressed": (packed, SpecError, "set/train/0001.tar.gz is compressed"),
    "no split": (lambda r: (r / "test-0000.tar").rename(r / "tests-0.tar"), SpecError, "mean 'tests'"),
    "nothing": (lambda r: r.rename(r.with_name("sets")), MissingError, "did you mean 'sets'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_shard_that_cannot_be_used_is_named_in_a_line(root: Path, name: str) -> None:
    damage, kind, said = BAD[name]
    damage(root)
    with pytest.raises(kind) as caught:
        load("set", root.parent, data_on_device=None)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.unlink(), "train/0001.tar is gone"),
        (lambda path: path.write_bytes(path.read_bytes()), "train/0001.tar was replaced during the run"),
    ],
    ids=["gone", "replaced"],
)
def test_shard_that_changes_during_a_run_is_said(
    root: Path, change: Callable[[Path], object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "HELD", 1)  # of three: the second shard is read again
    path = root / "train/0001.tar"
    os.utime(path, ns=(1, 1))
    train = load("set", root.parent).splits["train"]
    change(path)
    with pytest.raises(HostlerError, match=said):
        train[9]


def test_transform_cannot_read_a_bucket_from_other_processes(gcs: GcsEmulator, tmp_path: Path) -> None:
    url = f"gs://{servers.BUCKET}/pictures"
    for key, content in tar_world.dataset().items():
        open_store(url).put(key, content)
    (tmp_path / "my.py").write_text("def same(x, training): return x.float()\n")
    more = {"dataset": f"tar/{url}", "data_dir": str(tmp_path), "image_size": 12, "data_on_device": False,
            "transform": f"{tmp_path}/my.py:same", "model": "tiny/lenet"}  # fmt: skip
    with pytest.raises(SpecError, match="loader processes cannot read"):
        world.parts(**more, num_workers=1)
    assert world.parts(**more, num_workers=0).batch(0)[0].shape == (4, 3, 12, 12)
