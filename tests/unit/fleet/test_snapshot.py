from __future__ import annotations

import json
import os
import socket
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from dict_store import DictStore

from hostler.errors import MissingError, UsageError
from hostler.fleet.snapshot import archive, snapshot, tree
from hostler.records import layout
from hostler.records import project as projects
from hostler.settings import Sizes, Timing
from hostler.store.folder import FolderStore

pytestmark = pytest.mark.needs("git")


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    return subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def project(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", "/").replace("_py", ".py")).parent.mkdir(parents=True, exist_ok=True)
        (folder / name.replace("__", "/").replace("_py", ".py")).write_text(text)
    return folder


def take(folder: Path, cache: Path, **sizes: float) -> snapshot.Snapshot:
    return snapshot.take(folder, Sizes(**sizes), cache=cache, clock=lambda: time.time() + 60)


def names(shot: snapshot.Snapshot) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(shot.archive, errors="surrogateescape") as tar:
        return {info.name: info for info in tar}


def test_equal_trees_have_the_same_name(tmp_path: Path) -> None:
    one = project(tmp_path / "one", train_py="print(1)", lib__a_py="x")
    two = project(tmp_path / "a 'b\n; echo x", lib__a_py="x", train_py="print(1)")
    os.utime(two / "train.py", (1, 1))
    (two / "train.py").chmod(0o600)
    assert take(one, tmp_path / "c").sha == take(two, tmp_path / "d").sha
    (two / "train.py").chmod(0o700)
    assert take(one, tmp_path / "c").sha != take(two, tmp_path / "d").sha


def test_the_archive_carries_no_times_or_owners(tmp_path: Path) -> None:
    shot = take(project(tmp_path / "p", train_py="x"), tmp_path / "c")
    info = names(shot)["train.py"]
    assert (info.mtime, info.uid, info.gid, info.uname, info.mode) == (0, 0, 0, "", 0o644)
    assert archive.hash_file(shot.archive) == shot.sha


def test_an_unchanged_project_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path / "p", train_py="x")
    first = take(folder, tmp_path / "c")
    monkeypatch.setattr(snapshot, "pack", None)
    assert take(folder, tmp_path / "c") == first


def test_a_change_of_equal_length_and_time_is_seen(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x")
    first = take(folder, tmp_path / "c")
    before = (folder / "train.py").stat()
    (folder / "train.py").write_text("y")
    os.utime(folder / "train.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert take(folder, tmp_path / "c").sha != first.sha


def test_a_file_written_just_now_is_read_again_next_time(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x")
    snapshot.take(folder, Sizes(), cache=tmp_path / "c", clock=time.time)
    assert not list((tmp_path / "c" / "snapshots").glob("*.json"))


def test_a_damaged_memo_costs_only_a_reading(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x")
    first = take(folder, tmp_path / "c")
    for memo in (tmp_path / "c" / "snapshots").glob("*.json"):
        memo.write_text("[1")
    assert take(folder, tmp_path / "c") == first


def test_archives_unused_for_a_week_are_removed_from_the_cache(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x")
    first = take(folder, tmp_path / "c")
    os.utime(first.archive, (1, 1))
    (folder / "train.py").write_text("other")
    assert take(folder, tmp_path / "c").archive.exists() and not first.archive.exists()


def test_links_inside_stay_links_and_links_out_are_named(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", lib__a_py="x")
    (tmp_path / "secret").write_text("secret")
    (folder / "in").symlink_to("lib/a.py")
    (folder / "dir").symlink_to("lib")
    (folder / "abs").symlink_to(folder / "lib" / "a.py")
    (folder / "out").symlink_to("../secret")
    (folder / "chain").symlink_to("out")
    (folder / "lib" / "up").symlink_to("..")
    (folder / "sly").symlink_to("lib/up/../secret")
    shot = take(folder, tmp_path / "c")
    found = names(shot)
    assert {n: found[n].linkname for n in ("in", "dir", "abs")} == {
        "in": "lib/a.py",
        "dir": "lib",
        "abs": "lib/a.py",
    }
    assert not {"out", "chain", "sly"} & set(found)
    assert [note.split(":")[0] for note in shot.notes] == ["chain", "out", "sly"]


def test_sockets_and_pipes_are_left_out_and_named(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "sock"))
        shot = take(folder, tmp_path / "c")
    assert set(names(shot)) == {"train.py"}
    assert [note.split(":")[0] for note in shot.notes] == ["pipe", "sock"]


def test_odd_names_come_along(tmp_path: Path) -> None:
    odd = [b"new\nline", b"quo'te\"", b"\xff\xfe", "ü".encode(), b"-rf", b" lead", b"x" * 200]
    folder = tmp_path / "p"
    folder.mkdir()
    for name in odd:
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_text("x")
    shot = take(folder, tmp_path / "c")
    assert {os.fsencode(name) for name in names(shot)} == set(odd)
    store = DictStore()
    snapshot.upload(store, shot)
    record = json.loads(store.get(layout.code_record(shot.sha)).data)
    assert {os.fsencode(name) for name, _ in record["files"]} == set(odd)


def test_too_large_project_is_refused_naming_the_file(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x", runs__1__model="y" * 5000, runs__1__log="z")
    with pytest.raises(UsageError) as caught:
        take(folder, tmp_path / "c", snapshot_max=1000)
    assert "runs/1/model 5 kB" in caught.value.message and ".hostlerignore" in caught.value.hint
    (folder / ".hostlerignore").write_text("model\n")
    assert "runs/1/model" not in names(take(folder, tmp_path / "c", snapshot_max=1000))


def test_too_many_files_are_refused_and_their_folder_named(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x", **{f"images__sub__{n}": "" for n in range(30)})
    with pytest.raises(UsageError, match=r"31 files, over 10; most: images/sub/ 30, train.py 1"):
        take(folder, tmp_path / "c", snapshot_files=10)


@pytest.mark.parametrize("change", ["grow", "shrink", "vanish", "pipe"])
def test_file_changing_while_read_leaves_a_valid_archive(tmp_path: Path, change: str) -> None:
    folder = project(tmp_path / "p", a="first" * 1000, b="last")
    seen = tree.scan(folder, None)
    if change == "grow":
        (folder / "a").write_text("longer" * 3000)
    elif change == "shrink":
        (folder / "a").write_text("s")
    else:
        (folder / "a").unlink()
        if change == "pipe":
            os.mkfifo(folder / "a")
    packed = archive.pack(seen, tmp_path / "t.tar", compress=False)
    with tarfile.open(tmp_path / "t.tar") as tar:
        last = tar.extractfile("b")
        assert last is not None and last.read() == b"last"
    assert [line.split(":")[0] for line in packed.disturbed] == ["a"]


def test_a_file_cut_during_its_own_reading_is_padded(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", a="x" * 100)
    with open(folder / "a", "rb") as file:
        reader = archive._Exactly(file, 100)
        os.truncate(folder / "a", 10)
        assert reader.read(60) == b"x" * 10 + b"\0" * 50 and reader.read(60) == b"\0" * 40


def test_commit_and_difference_are_recorded(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="one\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    clean = take(folder, tmp_path / "c")
    assert (clean.commit, clean.dirty, clean.diff) == (git(folder, "rev-parse", "HEAD"), False, "")
    (folder / "train.py").write_text("two\n")
    (folder / "new.py").write_text("")
    dirty = take(folder, tmp_path / "c")
    assert dirty.dirty and dirty.diff is not None
    assert "+two" in dirty.diff and "# untracked: 'new.py'" in dirty.diff
    (folder / "train.py").write_text("line\n" * 400_000)
    assert 1_000_000 <= len(take(folder, tmp_path / "c").diff or "") < 1_100_000


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path / "p", train_py="one\n")
    git(folder, "init", "-q")
    assert take(folder, tmp_path / "c").commit is None
    monkeypatch.setenv("PATH", str(tmp_path))
    shot = take(folder, tmp_path / "c")
    assert (shot.commit, shot.dirty, shot.diff) == (None, False, None)


def test_what_git_tracks_comes_along_although_a_rule_ignores_it(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", out__kept="x", out__junk="y", train_py="z")
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("out/\n")
    git(folder, "add", "-f", "out/kept", "train.py")
    assert set(names(take(folder, tmp_path / "c"))) == {".gitignore", "out", "out/kept", "train.py"}
    (folder / ".hostlerignore").write_text("kept\n")
    assert "out/kept" not in names(take(folder, tmp_path / "c"))


def test_an_excluded_store_folder_stays_out(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", train_py="x", store__alive="y")
    shot = snapshot.take(folder, Sizes(), cache=tmp_path / "c", exclude=(folder / "store",))
    assert set(names(shot)) == {"train.py"}


def test_a_snapshot_is_uploaded_once(tmp_path: Path) -> None:
    shot = take(project(tmp_path / "p", train_py="x"), tmp_path / "c")
    store = DictStore()
    assert snapshot.upload(store, shot) and not snapshot.upload(store, shot)
    assert store.uploads == [layout.code(shot.sha)]
    assert json.loads(store.get(layout.code_record(shot.sha)).data)["format"] == 1


def test_an_upload_that_was_cut_off_is_done_again(tmp_path: Path) -> None:
    shot = take(project(tmp_path / "p", train_py="x"), tmp_path / "c")
    store = DictStore()
    store.put(layout.code(shot.sha), b"half")
    assert snapshot.upload(store, shot)
    assert store.get(layout.code(shot.sha)).data == shot.archive.read_bytes()


def test_a_missing_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"the folder .* does not exist"):
        take(tmp_path / "none", tmp_path / "c")


def test_stores_are_no_part_of_the_code_whichever_they_are(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    for name in ("old-store", "deep/runs"):
        store = FolderStore(tmp_path / name)
        projects.ensure(store, "p", Timing())
        store.put("sweeps/s/spec/000001.json", b"{}")
    (tmp_path / "mine" / "project").mkdir(parents=True)
    (tmp_path / "mine" / layout.project(1)).write_text("[1]")
    taken = take(tmp_path, tmp_path.parent / f"{tmp_path.name}-cache")
    assert [name for name, _ in taken.files] == [f"mine/{layout.project(1)}", "train.py"]
