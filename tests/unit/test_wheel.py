"""The wheel, built as pip builds it: the files that are not Python travel with it."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import hostler
from hostler.backends.registry import BACKENDS

ROOT = Path(__file__).parents[2]


def _built(place: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """Wheel and sdist, as a release has them."""
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(place)]
    subprocess.run(words, cwd=root, check=True, capture_output=True, timeout=120)
    return next(place.glob("*.whl")), next(place.glob("*.tar.gz"))


def test_release_is_the_same_to_the_byte_wherever_it_is_built(tmp_path: Path) -> None:
    first = _built(tmp_path / "first")
    with tarfile.open(first[1]) as archive:
        archive.extractall(tmp_path / "copy", filter="data")
    [copy] = (tmp_path / "copy").iterdir()
    for path in copy.rglob("*"):
        os.utime(path, (10**9, 10**9))
    for one, other in zip(first, _built(tmp_path / "second", copy), strict=True):
        assert one.name == other.name and one.read_bytes() == other.read_bytes()


def test_wheel_is_typed_pure_and_says_what_it_is(tmp_path: Path) -> None:
    wheel, _ = _built(tmp_path)
    assert wheel.name == f"hostler-{hostler.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        assert "hostler/py.typed" in names and not [name for name in names if name.endswith((".so", ".c"))]
        assert any(name.endswith(".dist-info/sboms/sbom.cdx.json") for name in names)
        [about] = [name for name in names if name.endswith(".dist-info/METADATA")]
        told = email.message_from_bytes(opened.read(about))
    assert told["Version"] == hostler.__version__ and told["License-Expression"] == "Apache-2.0"
    assert {"all", "buckets", "hydra", "mcp", "train"} <= set(told.get_all("Provides-Extra") or ())
    assert told["Requires-Python"] == ">=3.10" and "never loses a run" in told["Summary"]


def test_wheel_holds_an_example_of_every_fleet(tmp_path: Path) -> None:
    wheel, _ = _built(tmp_path)
    with zipfile.ZipFile(wheel) as opened:
        assert "hydra_plugins/hostler_launcher.py" in opened.namelist()
        held = {name: opened.read(name) for name in opened.namelist() if name.endswith("/fleet.yaml")}
    assert held == {
        f"hostler/backends/{name}/fleet.yaml": (
            ROOT / "src" / "hostler" / "backends" / name / "fleet.yaml"
        ).read_bytes()
        for name in BACKENDS
    }
