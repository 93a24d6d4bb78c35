from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import hostler
from hostler.attempt.nvml import GPU
from hostler.worker.prepare import packages
from hostler.worker.run.surroundings import capture


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_record_tells_python_packages_and_gpus() -> None:
    gpu = GPU(0, "GPU-1", "H200", 10)
    record = json.loads(json.dumps(capture(sys.executable, [gpu], driver="550.1")))
    assert record["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert record["packages"]["pytest"] == pytest.__version__
    assert record["gpus"] == [{"uuid": "GPU-1", "name": "H200", "memory": 10}]
    assert (record["driver"], record["hostler"]) == ("550.1", hostler.__version__)


def fake_python(tmp_path: Path) -> tuple[Path, Path, Path]:
    """An interpreter that counts how often it is started, with one folder on its path."""
    site, counter, exe = tmp_path / "site", tmp_path / "count", tmp_path / "python"
    site.mkdir()
    answer = {"python": "3.9.1", "implementation": "CPython", "platform": "x", "prefix": "/", "packages": {}}
    (tmp_path / "answer").write_text(json.dumps({**answer, "path": [str(site)]}))
    exe.write_text(f"#!/bin/sh\necho x >> {counter}\ncat {tmp_path}/answer\n")
    exe.chmod(0o755)
    return exe, site, counter


def test_an_interpreter_is_asked_again_only_when_its_packages_changed(tmp_path: Path) -> None:
    exe, site, counter = fake_python(tmp_path)
    assert packages.inspect(str(exe)) == packages.inspect(str(exe))
    assert counter.read_text() == "x\n"
    os.utime(site, ns=(1, 1))
    assert packages.inspect(str(exe)).python == "3.9.1"
    assert counter.read_text() == "x\nx\n"


def test_a_damaged_memory_is_asked_anew(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exe, _, counter = fake_python(tmp_path)
    packages.inspect(str(exe))
    for file in (cache / "interpreters").iterdir():
        file.write_text("{")
    monkeypatch.setattr(packages, "_HELD", {})  # another worker's
    packages.inspect(str(exe))
    assert counter.read_text() == "x\nx\n"


def test_packages_of_every_kind_are_named_with_their_versions(tmp_path: Path) -> None:
    site = tmp_path / "site"
    records = {
        "Fancy-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: Fancy\nVersion: 1.5\n\nName: prose\n",
        "old-0.2.egg-info/PKG-INFO": "Metadata-Version: 1.0\nVersion: 0.2\nName: old\n",
        "odd-3.dist-info/METADATA": "Metadata-Version: 2.1\nname: odd\nVersion:\n 3\n\n",  # as mail may be
        "empty-1.dist-info/RECORD": "",
    }
    for name, text in records.items():
        (site / name).parent.mkdir(parents=True)
        (site / name).write_text(text)
    exe = tmp_path / "python"
    exe.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" -S "$@"\n')
    exe.chmod(0o755)
    assert packages.inspect(str(exe)).packages == {"fancy": "1.5", "old": "0.2", "odd": "3"}


def test_first_of_two_packages_of_one_name_counts(tmp_path: Path) -> None:
    sites = [tmp_path / "first", tmp_path / "second"]
    for site, version in zip(sites, ("1", "2"), strict=True):
        (site / "Fancy.dist-info").mkdir(parents=True)
        head = f"Metadata-Version: 2.1\nName: Fancy\nVersion: {version}"
        (site / "Fancy.dist-info" / "METADATA").write_text(f"{head}\n\nName: prose\n{'x' * 9000}\n")
    (sites[1] / "other.dist-info").mkdir()
    (sites[1] / "other.dist-info" / "METADATA").write_text("Name: other\nVersion: 3\n")
    exe = tmp_path / "python"
    path = ":".join(map(str, sites))
    exe.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -S "$@"\n')
    exe.chmod(0o755)
    assert packages.inspect(str(exe)).packages == {"fancy": "1", "other": "3"}
