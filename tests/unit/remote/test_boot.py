"""The first lines on a machine with nothing: an unpacked hostler that is there is run only if it is ours."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from hostler.remote.standalone import standalone

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
MODULE = "def serve(args, source, sink): sink.write(b'served')"


def packed() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("here.py", MODULE)
    return target.getvalue()


def start(cache: Path, sha: str, sent: bytes = b"") -> list[bytes]:
    """What it answers, without the mark; `sent` is hostler, if it asks for it."""
    told = {"mark": "m", "sha": sha, "cache": str(cache), "module": "here", "args": {}}
    given = json.dumps(told).encode() + b"\n" + b"%d\n" % len(sent) + sent
    bare = [sys.executable, "-IS", "-c", standalone("hostler.remote.boot")]
    done = subprocess.run(bare, input=given, capture_output=True, timeout=60, umask=0)
    return done.stdout.split(b"\0hostler:m:")[1:]


def plant(cache: Path, sha: str) -> Path:
    place = cache / "library" / sha
    place.mkdir(parents=True)
    (place / "here.py").write_text("raise SystemExit('planted')")
    return place


def test_hostler_is_unpacked_closed_to_others_and_found_again(tmp_path: Path) -> None:
    data, cache = packed(), tmp_path / "cache"
    sha = hashlib.sha256(data).hexdigest()
    first, second = start(cache, sha, zlib.compress(data)), start(cache, sha)
    assert first[0].startswith(b"need") and first[1].endswith(b"served")
    assert second[0].startswith(b"ready") and second[0].endswith(b"served")
    places = (cache, cache / "library", cache / "library" / sha)
    assert [place.stat().st_mode & 0o022 for place in places] == [0, 0, 0]


@pytest.mark.parametrize("level", ["", "library", "library/abc"])
def test_folder_that_others_write_is_refused_by_boot(tmp_path: Path, level: str) -> None:
    plant(tmp_path / "cache", "abc")
    (tmp_path / "cache" / level).chmod(0o777)
    [answer] = start(tmp_path / "cache", "abc")
    word, _, facts = answer.partition(b" ")
    assert word == b"refused"
    assert json.loads(facts)["why"] == f"other users can write to {(tmp_path / 'cache' / level)}"


@as_root
def test_hostler_of_another_user_is_refused_by_boot(tmp_path: Path) -> None:
    place = plant(tmp_path / "cache", "abc")
    os.chown(place, NOBODY, NOBODY)
    [answer] = start(tmp_path / "cache", "abc")
    assert answer.startswith(b"refused") and b"belongs to another user" in answer
