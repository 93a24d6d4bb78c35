from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from hostler.backends import privatefile
from hostler.backends.base import Plan
from hostler.backends.local.backend import LocalBackend
from hostler.backends.privatefile import PrivateContent
from hostler.errors import MachineError, MissingError
from hostler.spec.project import Fleet

KEPT = PrivateContent({"KEY": 'it\'s\n"odd" $x 🔑'}, {"AWS_SECRET_ACCESS_KEY": "k"})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "cache"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_kept_file_comes_back_and_is_private_under_any_umask(umask: int) -> None:
    before = os.umask(umask)
    try:
        place = privatefile.keep_new("p/lab", KEPT)
    finally:
        os.umask(before)
    assert (mode(place), mode(place.parent)) == (0o600, 0o700)
    assert privatefile.read(place) == KEPT and "odd" not in repr(KEPT)
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_a_folder_that_others_may_read_is_closed_first(cache: Path) -> None:
    privatefile.folder().mkdir(parents=True)
    privatefile.folder().chmod(0o755)
    assert mode(privatefile.keep_new("lab", KEPT).parent) == 0o700


def test_folder_that_others_can_write_takes_no_secret(cache: Path) -> None:
    privatefile.folder().mkdir(parents=True)
    privatefile.folder().chmod(0o777)
    with pytest.raises(MachineError, match="other users can write to"):
        privatefile.keep_new("lab", KEPT)


def test_a_file_that_others_may_read_is_not_believed(cache: Path) -> None:
    place = privatefile.keep_new("lab", KEPT)
    place.chmod(0o640)
    with pytest.raises(MachineError, match="other users may read") as error:
        privatefile.read(place)
    assert "odd" not in str(error.value)


def test_a_link_in_its_place_is_not_followed(cache: Path, tmp_path: Path) -> None:
    place = privatefile.keep_new("lab", KEPT)
    other = place.rename(tmp_path / "other.json")
    place.symlink_to(other)
    with pytest.raises(MachineError, match="cannot be read"):
        privatefile.read(place)


def test_one_that_is_gone_or_damaged_is_one_line(cache: Path) -> None:
    place = privatefile.keep_new("lab", KEPT)
    place.write_text("{")
    with pytest.raises(MachineError, match="is damaged"):
        privatefile.read(place)
    privatefile.remove(place)
    with pytest.raises(MissingError, match="secrets of this launch are gone"):
        privatefile.read(place)


def test_a_fleet_s_own_go_and_others_stay() -> None:
    names = [privatefile.name_of(fleet, "1") for fleet in ("a", "a.b", "ab")]
    for name in names:
        privatefile.keep(name, KEPT)
    newer = privatefile.keep(privatefile.name_of("a", "2"), KEPT)
    privatefile.remove_all("a", but=newer.name)
    assert sorted(path.name for path in privatefile.folder().iterdir()) == sorted([*names[1:], newer.name])


def test_where_the_folder_cannot_be_made_it_is_one_line(cache: Path) -> None:
    cache.mkdir()
    (cache / "secrets").write_text("in the way")
    with pytest.raises(MachineError, match="secrets is not a folder but a link or a file"):
        privatefile.keep_new("lab", KEPT)


@pytest.mark.parametrize("place", ["{0}/notes.txt", "{0}/secrets/../notes.txt", "{0}/secrets/deep/notes.txt"])
def test_own_secrets_outside_their_folder_stay(cache: Path, place: str) -> None:
    path = Path(place.format(cache))
    for folder in (cache / "secrets" / "deep", path.parent):
        folder.mkdir(parents=True, exist_ok=True)
    path.write_text("a person's")
    privatefile.remove_own(f"own:{path}")
    assert path.exists()


def test_file_of_a_killed_worker_goes_when_it_is_missed() -> None:
    place = privatefile.keep_new("lab", KEPT)
    fleet = Fleet("lab", "local")
    backend, words = LocalBackend(), ("sleep", "600", "--secrets", f"own:{place}")
    backend.start(Plan(fleet, (words[:2],)))
    [record] = Path(os.environ["XDG_RUNTIME_DIR"]).rglob("fleets/lab/*.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "secrets": words[3]}))
    backend.stop(fleet, now=True)
    os.waitpid(json.loads(record.read_text())["pid"], 0)
    assert place.exists() and not backend.list(fleet)
    assert not place.exists()
