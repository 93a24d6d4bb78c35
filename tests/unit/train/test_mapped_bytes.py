"""`bytes/PATH`: pictures of a file that is larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import tar_world
import train_world as world
from hostler.errors import DamagedError, HostlerError, MissingError, SpecError
from hostler.train.data import sources
from hostler.train.data.feed import AheadFeed, ArrayFeed, Share, in_order
from hostler.train.data.mapped import Mapped
from hostler.train.data.order import ExampleOrder
from hostler.train.data.split import Arrays, Data
from small_trainings import Place, place, same

__all__ = ["place"]
HERE = torch.device("cpu")
COUNTS = {"train": 22, "test": 9}
LAYOUTS = {"channels last": (6, 5, 3), "channels first": (3, 6, 5), "gray": (6, 5)}
MEGABYTE = 1 << 20


def save(root: Path, sides: tuple[int, ...] = (6, 5, 3)) -> None:
    tar_world.raw(root, COUNTS, sides)


def load(root: Path, **given: object) -> Data:
    more = {"data_on_device": False, "data_dir": str(root.parent), **given}
    return sources.load(world.config(dataset=f"bytes/{root.name}", **more))


@pytest.mark.parametrize("sides", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("threads", [0, 2])
def test_batches_are_those_of_the_same_bytes_in_memory(
    tmp_path: Path, sides: tuple[int, ...], threads: int
) -> None:
    save(tmp_path / "set", sides)
    there, here = load(tmp_path / "set"), load(tmp_path / "set", data_on_device=None)
    mapped, whole = there.splits["train"], here.splits["train"]
    assert isinstance(mapped, Mapped) and isinstance(whole, Arrays)
    assert (there.input_shape, there.n_classes) == (here.input_shape, here.n_classes)
    assert whole.x.shape[1:] == there.input_shape
    assert not torch.equal(whole.x[0], whole.x[1])
    order = ExampleOrder(len(whole), 4, seed=3)
    for share in (Share(), Share(1, 2)):
        read = AheadFeed(mapped, order, share, HERE, threads, 40)
        held = ArrayFeed(whole, order, share, HERE)
        for step in (0, 1, 2, 3, 17, 18, 5):
            for mine, theirs in zip(read.at(step), held.at(step), strict=True):
                assert torch.equal(mine, theirs) and mine.stride() == theirs.stride()
        read.close()
    batches = [
        in_order(one, 4, HERE, threads, Share()) for one in (there.splits["test"], here.splits["test"])
    ]
    for mine, theirs in zip(*batches, strict=True):
        assert torch.equal(mine[0], theirs[0]) and torch.equal(mine[1], theirs[1])


def test_channels_that_lie_last_stay_there_where_asked(tmp_path: Path) -> None:
    save(tmp_path / "set")
    plain, last = (load(tmp_path / "set", channels_last=one).splits["train"] for one in (False, True))
    x = last.arrived(last.gather([4, 1], HERE))
    assert x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    assert torch.equal(x, plain.arrived(plain.gather([4, 1], HERE)))


@pytest.mark.parametrize("last", [False, True])
def test_training_from_a_file_has_the_bits_of_one_in_memory(place: Place, last: bool) -> None:
    save(place.folder / "data/set", (8, 8, 3))
    more = {
        "dataset": "bytes/set",
        "model": "tiny/lenet",
        "augment": ["flip", "crop_1"],
        "channels_last": last,
    }
    place.train(**more, data_on_device=False, num_workers=2)
    read = place.weights()
    place.train(**more, data_on_device=None, output_dir="out2", log_interval=2)  # another run
    place.train(**more, data_on_device=False, num_workers=0, output_dir="out3", log_interval=3)
    assert same(read, place.weights("../out2/model.safetensors"))
    assert same(read, place.weights("../out3/model.safetensors"))


def test_pictures_of_a_file_are_scaled_on_the_device(tmp_path: Path) -> None:
    save(tmp_path / "set")
    made = world.parts(
        dataset="bytes/set", data_dir=str(tmp_path), data_on_device=False, image_size=8, model="tiny/lenet"
    )
    assert made.batch(0)[0].shape == (4, 3, 8, 8)
    made.feed.close()


def peak() -> int:
    """Most memory of this process since the last `forget`, in bytes, pages of files among it."""
    [line] = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def forget() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def test_pass_over_a_large_file_takes_memory_for_batches_alone(tmp_path: Path) -> None:
    save(tmp_path / "set", (64, 64, 3))
    count = 16_000  # 187 MB, of which the disk holds nothing
    large = tmp_path / "set/train/images.npy"
    with open(large, "wb") as file:
        shape = {"descr": "|u1", "fortran_order": False, "shape": (count, 64, 64, 3)}
        np.lib.format.write_array_header_1_0(file, shape)
        file.truncate(file.tell() + count * 64 * 64 * 3)
    np.save(tmp_path / "set/train/labels.npy", np.arange(count) % 3)
    split = load(tmp_path / "set").splits["train"]
    feed = AheadFeed(split, ExampleOrder(count, 100, 1), Share(), HERE, 2, 160)
    for step in range(8):
        feed.at(step)
    before = forget()
    for step in range(8, 160):
        assert len(feed.at(step)[1]) == 100
    assert peak() - before < 48 * MEGABYTE
    feed.close()


def test_file_that_gets_shorter_is_said_not_a_crash(tmp_path: Path) -> None:
    save(tmp_path / "set")
    split = load(tmp_path / "set").splits["train"]
    os.truncate(tmp_path / "set/train/images.npy", 1000)
    split.gather([0], HERE)
    with pytest.raises(DamagedError, match="it ends inside picture 21"):
        split.gather([3, 21], HERE)


def pictures(**change: object) -> Callable[[Path], None]:
    return lambda root: np.save(root / "train/images.npy", **change)


def classes(numbers: object) -> Callable[[Path], None]:
    return lambda root: np.save(root / "train/labels.npy", np.asarray(numbers))


def cut(root: Path) -> None:
    os.truncate(root / "train/images.npy", 500)


def longer(root: Path) -> None:
    with open(root / "train/images.npy", "ab") as file:
        file.write(b"more")


def text(root: Path) -> None:
    (root / "train/images.npy").write_text("not an array")


def unclosed(root: Path) -> None:
    data = bytearray((root / "train/images.npy").read_bytes())
    data[data.index(b"{") + 1] = ord("{")
    (root / "train/images.npy").write_bytes(data)


def archive(root: Path) -> None:
    with open(root / "train/images.npy", "wb") as file:
        np.savez(file, x=np.zeros(3))


def pickled(root: Path) -> None:
    np.save(root / "train/labels.npy", np.array([{}] * 22), allow_pickle=True)


X = np.zeros((22, 6, 5, 3), np.uint8)
BAD: dict[str, tuple[Callable[[Path], object], type[HostlerError], str]] = {
    "short": (cut, DamagedError, "images.npy is damaged: it is not a .npy file, or an incomplete one"),
    "long": (longer, DamagedError, "it has 2,112 bytes, and its header says 2,108"),
    "text": (text, DamagedError, "images.npy is damaged: it is not a .npy file"),
    "unclosed": (unclosed, DamagedError, "images.npy is damaged: it is not a .npy file"),
    "archive": (archive, DamagedError, "images.npy is damaged: it holds several arrays"),
    "pickled": (pickled, DamagedError, "labels.npy is damaged"),
    "floats": (pictures(arr=X.astype(np.float32)), SpecError, "images.npy holds float32, not bytes"),
    "flat": (pictures(arr=X.reshape(22, -1)), SpecError, "images.npy has the shape 22×90"),
    "two channels": (pictures(arr=X[..., :2]), SpecError, "pictures of 6×5×2: neither"),
    "Fortran": (pictures(arr=np.asfortranarray(X)), SpecError, "is in Fortran's order"),
    "another shape": (pictures(arr=X[:, :4]), SpecError, "test/images.npy: pictures of 3×6×5, but train"),
    "none": (pictures(arr=X[:0]), HostlerError, "train"),
    "fewer classes": (classes([0] * 21), SpecError, "images.npy has 22 pictures and labels.npy 21 classes"),
    "classes below 0": (classes([0] * 21 + [-1]), SpecError, "the class of picture 21 is -1"),
    "classes far above": (classes([0] * 21 + [2**60]), SpecError, "picture 21 is 1152921504606846976"),
    "classes of test alone": (classes([1] * 22), SpecError, "split 'test' of bytes/set has the class 2"),
    "classes as numbers": (classes([0.5] * 22), SpecError, "labels.npy holds float64"),
    "no classes": (lambda r: (r / "train/labels.npy").unlink(), MissingError, "labels.npy does not exist"),
    "no split": (lambda r: (r / "test").rename(r / "tests"), SpecError, "did you mean 'tests'"),
    "nothing": (lambda r: r.rename(r.with_name("sets")), MissingError, "did you mean 'sets'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_files_is_said_in_a_line(tmp_path: Path, name: str) -> None:
    damage, kind, said = BAD[name]
    save(tmp_path / "set")
    damage(tmp_path / "set")
    with pytest.raises(kind) as caught:
        load(tmp_path / "set")
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.hint
