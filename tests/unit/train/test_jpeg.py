"""JPEG by torchvision in the place of Pillow: the same bytes on a CPU, and scaled alike on a device."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import servers
import tar_world
import torchvision_decoder
import train_world as world
from hostler.errors import DamagedError, MachineError, SpecError
from hostler.train.data import jpeg, sources
from hostler.train.data.feed import AheadFeed
from hostler.train.data.jpeg import JpegDecoder
from hostler.train.data.pictures import Decoded, PictureShape, as_bytes
from hostler.train.data.split import Arrays

SIZES = ((9, 7), (64, 48), (33, 70))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> None:
    torchvision_decoder.load(tmp_path_factory.getbasetemp())


def photograph(size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    """Soft colours, as photographs have them."""
    small = np.random.RandomState(1).randint(0, 256, (size[1] // 3 + 1, size[0] // 3 + 1, 3))
    return Image.fromarray(small.astype(np.uint8)).resize(size, Image.Resampling.BICUBIC).convert(mode)


def written(picture: Image.Image, **how: object) -> bytes:
    data = io.BytesIO()
    picture.save(data, "JPEG", **how)
    return data.getvalue()


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_torchvision_decodes_to_the_bytes_of_pillow(size: tuple[int, int], mode: str) -> None:
    for channels in (1, 3):
        made, shape = JpegDecoder(channels), PictureShape(channels, 12, 12)
        for how in ({"quality": 40}, {"quality": 95, "subsampling": 0}, {"progressive": True}):
            data = written(photograph(size, mode), **how)
            mine = made.picture(data, "it")
            if mode == "RGB" and channels == 1:
                assert mine is None, "gray of colours is Pillow's"
                continue
            assert mine is not None and mine.size == size
            with Image.open(io.BytesIO(data)) as theirs:
                assert torch.equal(as_bytes(mine, shape), as_bytes(theirs, shape))
                whole = PictureShape(channels, size[1], size[0])
                assert torch.equal(as_bytes(mine, whole), as_bytes(theirs, whole))


@pytest.mark.usefixtures("decoder")
def test_what_is_no_plain_jpeg_is_left_to_pillow() -> None:
    made, data = JpegDecoder(3), io.BytesIO()
    photograph((8, 8)).save(data, "PNG")
    assert made.picture(data.getvalue(), "it") is None
    assert made.picture(written(photograph((8, 8)).convert("CMYK")), "it") is None


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("keep", [20, 400], ids=["header", "picture"])
def test_jpeg_cut_short_is_named(keep: int) -> None:
    data = written(photograph((64, 48)))[:keep]
    with pytest.raises(DamagedError, match=r"^cat/7\.jpg cannot be read as a picture: ") as caught:
        JpegDecoder(3).picture(data, "cat/7.jpg")
    assert "\n" not in str(caught.value)


def test_decoder_that_cannot_be_loaded_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    image = servers.library("torchvision.io.image")
    monkeypatch.setattr(image, "_has_image_ops", lambda: False)
    with pytest.raises(MachineError, match=r"cannot decode here.*decoder: pillow"):
        JpegDecoder(3)


@pytest.mark.usefixtures("decoder")
def test_folder_and_shards_decode_alike_by_either_decoder(tmp_path: Path) -> None:
    files = {f"train/{tar_world.CLASSES[n % 3]}/{n}.jpg": tar_world.jpeg(n, (20, 14)) for n in range(9)}
    files["train/cat/odd.png"] = tar_world.jpeg(0, (11, 17), "PNG")
    tar_world.write(tmp_path / "pets", files)
    tar_world.write(
        tmp_path / "tars", {"train.tar": tar_world.tarred(tar_world.examples(range(9), (20, 14)))}
    )
    for dataset, count in (("folder/pets", 10), ("tar/tars", 9)):
        seen = []
        for decoder in ("pillow", "torchvision"):
            for held in (None, False):
                config = world.config(
                    dataset=dataset, data_dir=str(tmp_path), data_splits_map={"train": "train"},
                    image_size=12, decoder=decoder, data_on_device=held,
                )  # fmt: skip
                split = sources.load(config).splits["train"]
                assert isinstance(split, Arrays) == (held is None)
                if held is False and decoder == "torchvision":
                    assert isinstance(split, Decoded), "read by threads"
                seen.append(torch.stack([split[place][0] for place in range(count)]))
        assert all(torch.equal(one, seen[0]) for one in seen[1:])


@pytest.mark.usefixtures("decoder")
def test_folder_by_torchvision_is_read_ahead(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 4, "test": 1}, end="jpg")
    made = world.parts(
        dataset="folder/pets", data_dir=str(tmp_path), image_size=16, data_on_device=False, num_workers=2,
        model="tiny/lenet", decoder="torchvision",
    )  # fmt: skip
    assert isinstance(made.feed, AheadFeed)
    first = world.losses(made)
    made.feed.close()
    assert first[-1] < first[0]


def test_decoder_without_effect_is_refused() -> None:
    with pytest.raises(SpecError, match="decoder: torchvision has no effect on sklearn/digits"):
        world.config(dataset="sklearn/digits", decoder="torchvision")
    with pytest.raises(SpecError, match="decoder: 'nvjpeg' is not one of pillow, torchvision"):
        world.config(dataset="folder/pets", decoder="nvjpeg")


@pytest.mark.parametrize(
    "size", [(64, 48), (48, 64), (31, 90), (7, 5), (24, 18), (18, 24), (24, 24), (500, 375)]
)
def test_picture_scaled_on_a_device_is_that_of_pillow(size: tuple[int, int]) -> None:
    picture = photograph(size)
    x = torch.from_numpy(np.array(picture)).permute(2, 0, 1)
    for height, width in ((24, 24), (18, 24), (5, 40)):
        theirs = as_bytes(picture, PictureShape(3, height, width)).int()
        mine = jpeg.covered(x, height, width)
        assert mine.dtype == torch.uint8 and mine.shape == theirs.shape
        off = (mine.int() - theirs).abs()
        assert int(off.max()) <= 1 and float((off > 0).float().mean()) < 0.01
