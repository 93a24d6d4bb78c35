"""The wheel, built as pip builds it: the files that are not Python travel with it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hostler.backends.registry import BACKENDS

ROOT = Path(__file__).parents[2]


def test_wheel_holds_an_example_of_every_fleet(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        assert "hydra_plugins/hostler_launcher.py" in opened.namelist()
        held = {name: opened.read(name) for name in opened.namelist() if name.endswith("/fleet.yaml")}
    assert held == {
        f"hostler/backends/{name}/fleet.yaml": (
            ROOT / "src" / "hostler" / "backends" / name / "fleet.yaml"
        ).read_bytes()
        for name in BACKENDS
    }
