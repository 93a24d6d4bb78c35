from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hostler
from hostler.remote import zip_main
from hostler.remote.library_zip import TIME, own_zip


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "a library.zip"
    path.write_bytes(own_zip().data)
    return path


def run(path: Path, cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """In a Python that has nothing but itself."""
    variables = {
        "PATH": os.defpath,
        "HOSTLER_CACHE": str(cache),
        "HOSTLER_DISK_MIN": "0",
        "TMPDIR": str(cache),
    }
    cache.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-s", str(path), *words], env=variables, cwd=cache, capture_output=True, text=True
    )


def test_equal_sources_give_equal_zips_without_submitter_code() -> None:
    data = own_zip().data
    own_zip.cache_clear()
    assert own_zip().data == data
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        names = found.namelist()
    assert "__main__.py" in names and "hostler/worker/main.py" in names and "hostler/remote/boot.py" in names
    assert not any(name.startswith(("hostler/cli/", "hostler/testing/")) for name in names)


def test_zip_is_the_bytes_that_zipfile_writes() -> None:
    data = own_zip().data
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as found, zipfile.ZipFile(target, "w") as again:
        assert found.testzip() is None
        for info in found.infolist():
            fresh = zipfile.ZipInfo(info.filename, TIME)
            fresh.external_attr = 0o644 << 16
            again.writestr(fresh, found.read(info))
    assert target.getvalue() == data


def test_python_runs_the_zip_as_a_worker_with_nothing_installed(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    done = run(packed, tmp_path / "cache", str(tmp_path / "store"))
    assert done.returncode == 0 and "no run is left for this worker" in done.stdout, done.stderr
    [place] = (tmp_path / "cache" / "library").iterdir()
    assert place.name == own_zip().sha and (place / "hostler" / "worker" / "main.py").is_file()
    assert run(packed, tmp_path / "cache", str(tmp_path / "store")).returncode == 0


def test_what_was_unpacked_packs_to_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    run(packed, tmp_path / "cache", str(tmp_path))
    script = "from hostler.remote.library_zip import own_zip; print(own_zip().sha)"
    place = tmp_path / "cache" / "library" / own_zip().sha
    again = subprocess.check_output([sys.executable, "-c", script], env={"PYTHONPATH": str(place)}, text=True)
    assert again.strip() == own_zip().sha


def test_a_full_disk_is_one_clear_line(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "library").write_text("in the way")
    done = run(packed, tmp_path / "cache", str(tmp_path))
    assert done.returncode == 1 and done.stderr.startswith("hostler: ") and done.stderr.count("\n") == 1


def test_the_first_file_is_read_by_old_pythons_too() -> None:
    source = Path(zip_main.__file__).read_text()
    ast.parse(source, feature_version=(3, 4))
    assert "f'" not in source and 'f"' not in source


def test_too_old_python_finds_a_newer_or_says_so(tmp_path: Path) -> None:
    source = Path(zip_main.__file__).read_text().replace("OLDEST = (3, 10)", "OLDEST = (3, 19)")
    script = tmp_path / "door.py"
    script.write_text(source)
    alone = {"PATH": str(tmp_path / "nothing"), "HOSTLER_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, str(script)], env=alone, capture_output=True, text=True)
    assert done.returncode == 1 and "is too old: it needs 3.19 or newer" in done.stderr
    assert done.stderr.count("\n") == 1
    newer = tmp_path / "bin" / "python3.19"
    newer.parent.mkdir()
    newer.write_text('#!/bin/sh\necho "newer: $2"\n')
    newer.chmod(0o755)
    beside = {**alone, "PATH": str(newer.parent)}
    done = subprocess.run([sys.executable, str(script), "STORE"], env=beside, capture_output=True, text=True)
    assert done.stdout == "newer: STORE\n"


def test_the_library_is_all_of_the_machines_side() -> None:
    """What a worker imports is in the zip: nothing of it lies where the zip does not reach."""
    script = "import hostler.worker.session, hostler.worker.agent, sys; print(*sorted(sys.modules))"
    root = str(Path(hostler.__file__).parent.parent)
    loaded = subprocess.check_output(
        [sys.executable, "-c", script], env={"PYTHONPATH": root}, text=True
    ).split()
    assert not [
        name for name in loaded if name.startswith(("hostler.cli", "hostler.testing", "pydantic", "click"))
    ]
