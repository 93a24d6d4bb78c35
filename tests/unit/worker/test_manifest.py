"""A folder of the cache that a worker finds: used only as its maker left it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.errors import MachineError
from hostler.worker.prepare import manifest
from hostler.worker.prepare.once import once, once_in_place

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def make(place: Path) -> None:
    (place / "package").mkdir()
    (place / "package" / "model.py").write_text("one")
    (place / "train.py").write_text("print('trained')")
    (place / "link").symlink_to("train.py")


def use(folder: Path, *, exact: bool = True) -> Path:
    return once(folder, make, what="it", note=lambda line: None, exact=exact)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """One that an earlier session made: this one has not seen it."""
    folder = use(tmp_path / "code" / "abc")
    manifest._known.clear()
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are hashed from here on."""
    seen: list[str] = []
    hash_of = manifest._hash

    def noted(path: str, facts: os.stat_result) -> str:
        seen.append(os.path.basename(path))
        return hash_of(path, facts)

    monkeypatch.setattr(manifest, "_hash", noted)
    return seen


def rewrite(folder: Path) -> None:
    """The same size and modification time, other bytes."""
    path, facts = folder / "train.py", (folder / "train.py").stat()
    path.write_text("print('planted')")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size and path.stat().st_mtime_ns == facts.st_mtime_ns


def retarget(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("package/model.py")


TAMPERED: dict[str, Callable[[Path], object]] = {
    "train.py": rewrite,
    "link": retarget,
    "package/model.py": lambda folder: (folder / "package" / "model.py").unlink(),
    "package/json.py": lambda folder: (folder / "package" / "json.py").write_text("planted"),
    "zzz.py": lambda folder: (folder / "zzz.py").write_text("planted"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_entry_changed_since_it_was_made_is_refused(made: Path, name: str) -> None:
    TAMPERED[name](made)
    with pytest.raises(MachineError, match=f"is not what was put there: {name} was changed") as refused:
        use(made)
    assert f"rm -r {made}: it is made again" in refused.value.hint


def test_data_may_get_more_files_but_no_others(made: Path) -> None:
    (made / "labels.cache").write_text("a script's own")
    assert use(made, exact=False) == made
    manifest._known.clear()
    rewrite(made)
    with pytest.raises(MachineError, match=r"train\.py was changed"):
        use(made, exact=False)


def test_unchanged_entry_is_looked_at_once_and_not_hashed(made: Path, read: list[str]) -> None:
    for _ in range(3):
        assert use(made) == made
    assert read == [] and made in manifest._known


def test_entry_copied_to_another_disk_is_hashed_and_used(made: Path, tmp_path: Path, read: list[str]) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(made.parent), str(copy)], check=True)
    assert use(copy / "abc") == copy / "abc"
    assert {"train.py", "model.py"} <= set(read)


def test_entry_of_an_earlier_version_gets_a_manifest(made: Path) -> None:
    beside = made.with_name(f"{made.name}{manifest.ENDING}")
    beside.unlink()
    assert use(made) == made and beside.is_file()
    manifest._known.clear()
    rewrite(made)
    with pytest.raises(MachineError, match="is not what was put there"):
        use(made)


@pytest.mark.parametrize(
    "give", [lambda p: p.chmod(0o666), pytest.param(lambda p: os.chown(p, NOBODY, NOBODY), marks=as_root)]
)
def test_entry_without_manifest_that_others_reach_is_refused(
    made: Path, give: Callable[[Path], None]
) -> None:
    made.with_name(f"{made.name}{manifest.ENDING}").unlink()
    give(made / "train.py")
    with pytest.raises(MachineError, match="which another user can write to or made"):
        use(made)


@as_root
@pytest.mark.parametrize("way", [once, once_in_place])
def test_planted_entry_of_another_user_is_refused(tmp_path: Path, way: Callable[..., Path]) -> None:
    planted = tmp_path / "abc"
    planted.mkdir()
    os.chown(planted, NOBODY, NOBODY)
    with pytest.raises(MachineError, match="belongs to another user"):
        way(planted, make, what="it", note=lambda line: None)


@pytest.mark.parametrize("way", [once, once_in_place])
def test_entry_in_a_folder_that_others_write_is_refused(tmp_path: Path, way: Callable[..., Path]) -> None:
    folder = way(tmp_path / "code" / "abc", make, what="it", note=lambda line: None)
    folder.parent.chmod(0o777)
    with pytest.raises(MachineError, match="other users can write to"):
        way(tmp_path / "code" / "abc", make, what="it", note=lambda line: None)


def test_entry_is_closed_whatever_umask_and_archive_say(tmp_path: Path) -> None:
    script = (
        "import os, sys; os.umask(0)\n"
        "from pathlib import Path\n"
        "from hostler.worker.prepare.once import once\n"
        "make = lambda place: place.chmod(0o777)\n"
        "for _ in range(2): once(Path(sys.argv[1], 'a', 'b'), make, what='b', note=print)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert [p.stat().st_mode & 0o022 for p in (tmp_path / "a", tmp_path / "a" / "b")] == [0, 0]
