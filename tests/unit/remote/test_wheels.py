from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hostler.remote.wheels import WheelTarget, drivers_for, fits, here, machine, platforms, tags_of

HERE = WheelTarget((3, 11), ("linux", "x86_64", "glibc", "2.36"))


@pytest.mark.parametrize(
    ("tag", "wanted", "fit"),
    [
        ("cp311-abi3-manylinux_2_17_x86_64", WheelTarget((3, 11), HERE.platform), True),
        ("cp311-abi3-manylinux_2_17_x86_64", WheelTarget((3, 14), HERE.platform), True),
        ("cp311-abi3-manylinux_2_17_x86_64", WheelTarget((3, 10), HERE.platform), False),
        ("cp311-cp311-manylinux_2_17_x86_64", WheelTarget((3, 12), HERE.platform), False),
        ("cp311-cp311-manylinux_2_17_x86_64", WheelTarget((3, 11), HERE.platform), True),
        ("py3-none-any", WheelTarget((3, 10), HERE.platform), True),
        (
            "cp311-abi3-manylinux_2_17_x86_64",
            WheelTarget((3, 11), ("linux", "x86_64", "glibc", "2.39")),
            True,
        ),
        (
            "cp311-abi3-manylinux_2_17_x86_64",
            WheelTarget((3, 11), ("linux", "x86_64", "glibc", "2.28")),
            False,
        ),
        (
            "cp311-abi3-manylinux_2_17_x86_64",
            WheelTarget((3, 11), ("linux", "aarch64", "glibc", "2.36")),
            False,
        ),
        ("cp311-abi3-manylinux_2_17_x86_64", WheelTarget((3, 11), ("linux", "x86_64", "", "")), False),
        ("cp311-abi3-manylinux_2_17_x86_64", WheelTarget((3, 11), ("darwin", "arm64", "", "")), False),
    ],
)
def test_a_wheel_fits_where_python_and_platform_allow_it(tag: str, wanted: WheelTarget, fit: bool) -> None:
    assert fits([tag], HERE, wanted) is fit


def test_tags_are_read_from_the_record_of_an_installed_wheel() -> None:
    assert tags_of("Wheel-Version: 1.0\nTag: cp311-abi3-a\nTag: cp311-abi3-b\n") == [
        "cp311-abi3-a",
        "cp311-abi3-b",
    ]


def test_platforms_are_named_as_wheels_name_them() -> None:
    named = platforms(machine("3.12.1", ["linux", "aarch64", "glibc", "2.19"]))
    assert named == [
        "manylinux_2_19_aarch64",
        "manylinux_2_18_aarch64",
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
    ]
    assert platforms(machine("3.12", ["linux", "x86_64", "", ""])) == [
        "musllinux_1_2_x86_64",
        "musllinux_1_1_x86_64",
    ]
    assert "macosx_11_0_arm64" in platforms(machine("3.12", ["darwin", "arm64", "", ""]))


def test_driver_for_an_equal_machine_is_packed_offline(tmp_path: Path) -> None:
    files = drivers_for(here(), tmp_path)
    assert files == drivers_for(here(), tmp_path), "equal content has one name"
    for file in files:
        with zipfile.ZipFile(file) as packed:
            packed.extractall(tmp_path / "far")
    script = "import obstore.store; print(obstore.store.MemoryStore())"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(tmp_path / "far")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "MemoryStore" in done.stdout, done.stderr
