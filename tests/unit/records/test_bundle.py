"""Small files in one object: what is read back is what was saved, by every reader."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from hostler.analysis.board import pages
from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import decode
from hostler.records.checkpoint import archive, bundle, checkpoints, outputs
from hostler.records.checkpoint.archive import ArchiveTerms
from hostler.records.checkpoint.bundle import MOST, SMALL, Bundle
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.outputs import Output
from hostler.records.checkpoint.restorer import rows_of
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store, open_store

LARGE = b"l" * (SMALL + 1)
FILES = {"config.yaml": b"a: 1\n", "deep/empty": b"", "large.bin": LARGE, "stats.csv": b"step,loss\n1,2\n"}


@pytest.fixture
def store() -> Store:
    return open_store("memory:")


def folder(path: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def held(store: Store) -> Attempt:
    job = Job(name="s", command=("x",), runs=({"lr": 1},), metric="loss")
    assert sweeps.submit(store, job)
    key = RunKey("s", job.run_id(0))
    found = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("s", facts={"host": "h"}))
    assert found is not None
    return found


def kept(
    store: Store, attempt: Attempt, place: Path, sent: dict[str, str] | None = None, earlier: int = 0
) -> outputs.Kept:
    files = [Output(name, place / name) for name in FILES]
    before = outputs.before(store, attempt.key.run, earlier) if earlier else []
    return outputs.keep(
        store, attempt, files, before, lambda: None, {} if sent is None else sent, bundled=True
    )


def objects(store: Store, prefix: str) -> list[str]:
    return [entry.key.removeprefix(prefix) for entry in store.list(prefix)]


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_small_files_of_a_checkpoint_are_one_object(store: Store, tmp_path: Path) -> None:
    source = folder(tmp_path / "from")
    (source / "latest").symlink_to("config.yaml")
    saved = checkpoints.save(store, "r", Place(1, 1), source, dict, lambda: None, bundled=True)
    keys = objects(store, layout.checkpoint("r", 1, 1))
    assert sorted(keys) == ["COMMIT", "files/000000", "files/000001"], "the bundle, and the large one"
    checkpoints.restore(store, saved, tmp_path / "to")
    assert contents(tmp_path / "to") == {**FILES, "latest": FILES["config.yaml"]}
    assert (tmp_path / "to" / "latest").is_symlink()


def test_bundle_of_empty_files_alone_is_restored(store: Store, tmp_path: Path) -> None:
    source = folder(tmp_path / "from", {"DONE": b"", "deep/marker": b""})
    saved = checkpoints.save(store, "r", Place(1, 1), source, dict, lambda: None, bundled=True)
    checkpoints.restore(store, saved, tmp_path / "to")
    assert contents(tmp_path / "to") == {"DONE": b"", "deep/marker": b""}
    attempt = held(store)
    files = [Output("DONE", source / "DONE")]
    outputs.keep(store, attempt, files, [], lambda: None, {}, bundled=True)
    rows = outputs.before(store, attempt.key.run, attempt.number)
    outputs.fetch(store, attempt.key.run, rows, tmp_path / "out")
    assert contents(tmp_path / "out") == {"DONE": b""}


def test_deleted_checkpoint_leaves_no_bundle(store: Store, tmp_path: Path) -> None:
    checkpoints.save(store, "r", Place(1, 1), folder(tmp_path / "from"), dict, lambda: None, bundled=True)
    assert checkpoints.delete(store, "r", Place(1, 1))
    assert objects(store, "runs/") == []


def test_bundle_that_was_sent_is_not_sent_again(store: Store, tmp_path: Path) -> None:
    sent: set[tuple[str, str]] = set()
    source, place = folder(tmp_path / "from"), Place(1, 1)
    checkpoints.send(store, "r", place, source, sent, bundled=True)
    store.put(layout.checkpoint_file("r", 1, 1, 0), b"marked")
    checkpoints.send(store, "r", place, source, sent, bundled=True)
    assert store.get(layout.checkpoint_file("r", 1, 1, 0)).data == b"marked"
    (source / "config.yaml").write_bytes(b"b: 2\n")
    checkpoints.send(store, "r", place, source, sent, bundled=True)
    assert store.get(layout.checkpoint_file("r", 1, 1, 0)).data.startswith(b"b: 2\n")


def test_damaged_bundle_is_said_to_be_damaged(store: Store, tmp_path: Path) -> None:
    source = folder(tmp_path / "from")
    saved = checkpoints.save(store, "r", Place(1, 1), source, dict, lambda: None, bundled=True)
    store.put(layout.checkpoint_file("r", 1, 1, 0), b"a: 1\nstep,lost")
    with pytest.raises(DamagedError, match=r"stats\.csv is not what was saved"):
        checkpoints.restore(store, saved, tmp_path / "to")


def test_record_with_a_bundle_asks_an_older_hostler_to_upgrade(store: Store, tmp_path: Path) -> None:
    checkpoints.save(store, "r", Place(1, 1), folder(tmp_path / "from"), dict, lambda: None, bundled=True)
    data = store.get(layout.commit("r", 1, 1)).data
    with pytest.raises(NewerFormatError, match="a newer hostler"):
        decode(data, "COMMIT")
    assert decode(data, "COMMIT", bundle.FORMAT)["files"]


def test_record_without_small_files_has_the_usual_format(store: Store, tmp_path: Path) -> None:
    source = folder(tmp_path / "from", {"large.bin": LARGE})
    checkpoints.save(store, "r", Place(1, 1), source, dict, lambda: None, bundled=True)
    assert decode(store.get(layout.commit("r", 1, 1)).data, "COMMIT")["files"]


def test_small_outputs_are_one_object_for_every_reader(store: Store, tmp_path: Path) -> None:
    attempt = held(store)
    run = attempt.key.run
    assert kept(store, attempt, folder(tmp_path / "from")).refused == []
    assert len(objects(store, layout.all_outputs(run))) == 3, "the bundle, the large one, COMMIT"
    found = outputs.newest(store, run)
    assert found is not None
    outputs.fetch(store, run, found[1], tmp_path / "to")
    assert contents(tmp_path / "to") == FILES
    assert pages.file(store, attempt.key, "stats.csv")["text"] == FILES["stats.csv"].decode()
    assert pages.file(store, attempt.key, "large.bin")["size"] == len(LARGE)


def test_picture_in_a_bundle_is_shown_whole(store: Store, tmp_path: Path) -> None:
    attempt = held(store)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200
    place = folder(tmp_path / "from", {"a.txt": b"before", "plot.png": picture, "z.txt": b"after"})
    files = [Output(path.name, path) for path in sorted(place.iterdir())]
    outputs.keep(store, attempt, files, [], lambda: None, {}, bundled=True)
    shown = pages.file(store, attempt.key, "plot.png")["picture"]
    assert base64.b64decode(shown.partition("base64,")[2]) == picture


def test_archive_copies_files_out_of_a_bundle(store: Store, tmp_path: Path) -> None:
    attempt = held(store)
    run = attempt.key.run
    source = folder(tmp_path / "from")
    checkpoints.save(store, run, Place(attempt.number, 1), source, dict, lambda: None, bundled=True)
    kept(store, attempt, source)
    attempt.end(
        "done", attempts=1, metrics={"loss": {"last": 1.0, "min": 1.0, "max": 1.0, "step": 1}}, host="h"
    )
    terms = ArchiveTerms(2, "loss", "min")
    assert attempt.ended is not None
    found = archive.candidate(attempt.key, *attempt.ended, terms)
    assert found is not None
    archive.enter(store, found, terms)
    record = json.loads(store.get(layout.archived(run) + "COMMIT").data)
    assert record["format"] == 1
    for row in record["files"]:
        data = store.get(layout.archived_file(run, row["n"])).data
        assert (
            hashlib.sha256(data).hexdigest() == row["sha256"] and data == FILES[row["name"].partition("/")[2]]
        )
    assert len(record["files"]) == 2 * len(FILES)


def test_unchanged_files_of_an_earlier_attempt_stay_in_its_bundle(store: Store, tmp_path: Path) -> None:
    attempt = held(store)
    source = folder(tmp_path / "from")
    kept(store, attempt, source)
    attempt.release("queued")
    log = RunLog(store, attempt.key).read_on()
    second = claim(store, log, 60.0, lambda: 0.0, Claim("s2", facts={"host": "h"}))
    assert second is not None
    (source / "stats.csv").write_bytes(b"step,loss\n1,2\n2,1\n")
    found = kept(store, second, source, earlier=attempt.number)
    assert len(found.rows) == len(FILES)
    rows = outputs.newest(store, attempt.key.run)
    assert rows is not None
    outputs.fetch(store, attempt.key.run, rows[1], tmp_path / "to")
    assert contents(tmp_path / "to") == {**FILES, "stats.csv": b"step,loss\n1,2\n2,1\n"}


def test_full_bundle_takes_no_more(tmp_path: Path) -> None:
    path, small = tmp_path / "file", Bundle()
    path.write_bytes(b"x" * SMALL)
    for _ in range(MOST // SMALL):
        data = small.read(path)
        assert data is not None
        small.add(data)
    assert small.read(path) is None and len(small.data) == MOST


@pytest.mark.parametrize("at", [-1, "0", 1.5, 1 << 62])
def test_place_in_a_bundle_that_cannot_be_is_damage(at: object) -> None:
    with pytest.raises(DamagedError, match="place"):
        rows_of([{"name": "a", "size": 1, "n": 0, "at": at}])
