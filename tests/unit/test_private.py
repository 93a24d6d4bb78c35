"""Folders of this user, in a folder where everybody can make one, as /tmp is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hostler import env, private
from hostler.errors import MachineError

NOBODY = 65534
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can be another user"
)


@pytest.fixture
def common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like /tmp, which another user can reach; this machine's own folder would lie in it."""
    for level in (tmp_path, *tmp_path.parents):
        if level.stat().st_mode & 0o001 == 0:
            level.chmod(level.stat().st_mode | 0o011)
    folder = tmp_path / "common"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def as_nobody(*words: str) -> None:
    how = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]
    subprocess.run([*how, *words], check=True)


def test_own_folder_is_made_for_this_user_alone(common: Path) -> None:
    before = os.umask(0)
    try:
        made = private.own_folder(common / "a" / "b")
    finally:
        os.umask(before)
    assert [level.stat().st_mode & 0o777 for level in (made, made.parent)] == [0o700, 0o700]


def test_own_folder_that_others_could_read_is_closed(common: Path) -> None:
    (common / "a").mkdir(mode=0o755)
    assert private.own_folder(common / "a").stat().st_mode & 0o777 == 0o700


@as_root
@pytest.mark.parametrize("mode", ["0700", "0777"])
def test_machine_folder_of_another_user_is_refused(common: Path, mode: str) -> None:
    place = common / f"hostler-{os.getuid()}"
    as_nobody("mkdir", "-m", mode, str(place))
    with pytest.raises(MachineError, match="belongs to another user") as refused:
        env.machine_dir()
    assert refused.value.hint == f"remove it, or {private.ELSEWHERE}"


@as_root
def test_machine_folder_that_is_a_link_is_refused(common: Path, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o700)
    as_nobody("ln", "-s", str(tmp_path / "ours"), str(common / f"hostler-{os.getuid()}"))
    with pytest.raises(MachineError, match="is not a folder but a link"):
        env.machine_dir()


def test_machine_folder_that_others_can_write_is_refused(common: Path) -> None:
    place = common / f"hostler-{os.getuid()}"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(MachineError, match="other users can write to") as refused:
        env.machine_dir()
    assert f"chmod -R go-w {place}" in refused.value.hint


def test_cache_is_made_for_this_user_alone(common: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.CACHE, str(common / "cache"))
    assert env.cache_dir().stat().st_mode & 0o777 == 0o700


@as_root
def test_cache_of_another_user_is_refused(common: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_nobody("mkdir", str(common / "cache"))
    monkeypatch.setenv(env.CACHE, str(common / "cache"))
    with pytest.raises(MachineError, match="belongs to another user"):
        env.cache_dir()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_cache_that_others_can_write_is_refused(
    common: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (common / "cache").mkdir()
    (common / "cache").chmod(mode)
    monkeypatch.setenv(env.CACHE, str(common / "cache"))
    with pytest.raises(MachineError, match="other users can write to"):
        env.cache_dir()


def test_cache_may_be_read_by_others_and_a_link(common: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (common / "disk").mkdir()
    (common / "disk").chmod(0o755)
    (common / "cache").symlink_to(common / "disk")
    monkeypatch.setenv(env.CACHE, str(common / "cache"))
    assert env.cache_dir() == common / "cache"


@as_root
def test_cache_behind_a_link_of_another_user_is_refused(
    common: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (common / "disk").mkdir()
    as_nobody("ln", "-s", str(common / "disk"), str(common / "cache"))
    monkeypatch.setenv(env.CACHE, str(common / "cache"))
    with pytest.raises(MachineError, match="belongs to another user"):
        env.cache_dir()


@as_root
def test_group_of_the_user_alone_counts_as_the_user(common: Path) -> None:
    place = common / "a"
    place.mkdir()
    place.chmod(0o775)
    private.check_closed(place)
    os.chown(place, 0, NOBODY)
    with pytest.raises(MachineError, match="other users can write to"):
        private.check_closed(place)


@as_root
def test_runtime_folder_of_another_user_is_not_used(common: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = common / "run"
    foreign.mkdir()
    os.chown(foreign, NOBODY, NOBODY)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(foreign))
    assert env.machine_dir().parent == common and not list(foreign.iterdir())
