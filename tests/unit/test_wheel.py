"""The wheel, built as pip builds it: the files that are not Python travel with it."""

from __future__ import annotations

import email
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import hostler
import servers
from hostler.backends.registry import BACKENDS

ROOT = Path(__file__).parents[2]


def _built(place: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """Wheel and sdist, as a release has them."""
    servers.library("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(place)]
    subprocess.run(words, cwd=root, check=True, capture_output=True, timeout=120)
    return next(place.glob("*.whl")), next(place.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return _built(tmp_path_factory.mktemp("release"))


def test_release_is_the_same_bytes_wherever_it_is_built(release: tuple[Path, Path], tmp_path: Path) -> None:
    first = release
    with tarfile.open(first[1]) as archive:
        archive.extractall(tmp_path / "copy", filter="data")
    [copy] = (tmp_path / "copy").iterdir()
    for path in copy.rglob("*"):
        os.utime(path, (10**9, 10**9))
    for one, other in zip(first, _built(tmp_path / "second", copy), strict=True):
        assert one.name == other.name and one.read_bytes() == other.read_bytes()


def test_wheel_is_typed_pure_and_says_what_it_is(release: tuple[Path, Path]) -> None:
    wheel, _ = release
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


def test_wheel_and_sdist_install_by_pip_into_an_empty_environment(
    release: tuple[Path, Path], tmp_path: Path
) -> None:
    """What they need is seen from there afterwards; pip asks no index."""
    wheel, sdist = release
    pip, quiet = [sys.executable, "-m", "pip"], ["--quiet", "--no-index", "--no-deps"]
    words = [*pip, "wheel", *quiet, "--no-build-isolation", "-w", str(tmp_path / "again"), str(sdist)]
    subprocess.run(words, check=True, timeout=120)
    [again] = (tmp_path / "again").iterdir()
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())

    venv.create(tmp_path / "empty")
    python = tmp_path / "empty" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", *quiet, str(wheel)], check=True, timeout=120)
    [packages] = (tmp_path / "empty" / "lib").glob("*/site-packages")
    (packages / "beside.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    hidden = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [python.with_name("hostler"), "--version", "--json"], env=hidden, capture_output=True, check=True
    )
    assert json.loads(told.stdout)["version"] == hostler.__version__
    look = [
        python,
        "-c",
        "import hostler, hydra_plugins.hostler_launcher as it; print(hostler.__file__, it.__file__)",
    ]
    places = subprocess.run(look, env=hidden, capture_output=True, check=True, text=True).stdout.split()
    assert all(place.startswith(str(packages)) for place in places)


def test_wheel_holds_an_example_of_every_fleet(release: tuple[Path, Path]) -> None:
    wheel, _ = release
    with zipfile.ZipFile(wheel) as opened:
        assert "hydra_plugins/hostler_launcher.py" in opened.namelist()
        held = {name: opened.read(name) for name in opened.namelist() if name.endswith("/fleet.yaml")}
    assert held == {
        f"hostler/backends/{name}/fleet.yaml": (
            ROOT / "src" / "hostler" / "backends" / name / "fleet.yaml"
        ).read_bytes()
        for name in BACKENDS
    }
