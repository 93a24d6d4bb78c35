"""A worker frozen just before a write that matters, let go on after another has finished its run.

The freeze is at the store's seam: once the chosen write comes, every request of that worker waits, its
heartbeat's too, as if the whole process had been stopped there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from killer import Farm, farm, keys_of, often, outcome, until

from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store import Blob, Entry, Store, open_store
from hostler.worker.claim import room
from hostler.worker.loop import Worker, WorkerTerms
from hostler.worker.machine import Machine

# Logs and saves which attempt it is: what is seen afterwards tells who wrote it. It goes on from step 1 once
# something is saved, and leaves before its last file has come to rest.
SCRIPT = """
import json, os, sys, time
who = int(os.environ["HOSTLER_ATTEMPT"])
path = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "state.json")
begin = json.load(open(path))["step"] if os.path.exists(path) else 0
for step in range(begin, 4):
    print(json.dumps({"step": step, "who": who}))
    with open(path + ".tmp", "w") as file:
        json.dump({"step": step + 1, "who": who}, file)
    os.replace(path + ".tmp", path)
    while step == 1 and not os.path.exists(os.environ["SAVED"]): time.sleep(0.02)
sys.stdout.flush()
os._exit(0)
"""


class Freezer:
    """A store whose user is frozen from the first write on that `chosen` points out, until let go. `saved` is
    made with the first COMMIT."""

    def __init__(self, inner: Store, chosen: Callable[[str, bytes], bool], saved: Path) -> None:
        self._inner, self._chosen, self.url, self._saved = inner, chosen, inner.url, saved
        self.frozen, self.go_on = threading.Event(), threading.Event()

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        self._pass()
        return self._inner.get(key, start=start, end=end)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if self._chosen(key, data):
            self.frozen.set()
        self._pass()
        done = self._inner.put(key, data, if_absent=if_absent)
        if key.endswith("/COMMIT"):
            self._saved.touch()
        return done

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        self._pass()
        return self._inner.list(prefix, after, deep=deep)

    def delete(self, *keys: str) -> None:
        self._pass()
        self._inner.delete(*keys)

    def upload(self, path: Path, key: str) -> None:
        self._pass()
        self._inner.upload(path, key)

    def download(self, key: str, path: Path) -> None:
        self._pass()
        self._inner.download(key, path)

    def _pass(self) -> None:
        if self.frozen.is_set():
            self.go_on.wait()


def is_end(key: str, data: bytes) -> bool:
    return "/log/" in key and json.loads(data).get("kind") == "end"


def is_finished(key: str, data: bytes) -> bool:
    return key.endswith("/COMMIT") and bool(json.loads(data).get("finished"))


def is_second_commit(key: str, data: bytes) -> bool:
    return key.endswith("/COMMIT") and "-000000000002/" in key


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "machine"))
    url = (
        str(tmp_path / "store") if request.param == "folder" else request.getfixturevalue("seaweed_store_url")
    )
    with farm(url, tmp_path, settle=0.5) as made:
        (made.code / "who.py").write_text(SCRIPT)
        yield made


def worker(made: Farm, store: Store, session: str, said: list[str]) -> Worker:
    timing = replace(Timing(), **{name: float(value) for name, value in made.times.items()})
    here = Machine(store, made.folder / session, session, timing, say=said.append)
    return Worker(here, room.Room(room.offer(slots=1, cpus=1, gpus=None)), WorkerTerms())


@pytest.mark.parametrize(
    ("made", "chosen"),
    [
        ("folder", is_end),
        ("bucket", is_finished),
        ("folder", is_second_commit),
        pytest.param("bucket", is_end, marks=pytest.mark.soak),
        pytest.param("folder", is_finished, marks=pytest.mark.soak),
        pytest.param("bucket", is_second_commit, marks=pytest.mark.soak),
    ],
    indirect=["made"],
)
def test_frozen_workers_late_write_is_not_seen_after_its_successor(
    made: Farm, chosen: Callable[[str, bytes], bool]
) -> None:
    saved = made.folder / "saved"
    terms = often(env={"SAVED": str(saved)})
    job = made.submit(Job(name="who", command=("python3", "who.py"), **terms))  # type: ignore[arg-type]
    [key] = keys_of(job)
    freezer, said = Freezer(open_store(made.url), chosen, saved), list[str]()
    zombie = threading.Thread(target=worker(made, freezer, "zombie", said).run, daemon=True)
    zombie.start()
    until(freezer.frozen.is_set)
    try:
        assert worker(made, open_store(made.url), "successor", []).run() == 0
        first = outcome(made.store, key)
        assert first.state.state == "done" and first.end["attempt"] == 2
    finally:
        freezer.go_on.set()
        zombie.join(60)
    assert not zombie.is_alive()
    assert outcome(made.store, key) == first
    assert any("taken over" in line for line in said), said
    check(first, ended_already=chosen is is_end)


def check(found: Any, *, ended_already: bool) -> None:
    """The successor went on from what the zombie had committed, and from nothing else."""
    who = [value for _, value in found.points["who"]]
    assert [step for step, _ in found.points["who"]] == [0, 1, 2, 3]
    saved = json.loads(found.files["state.json"])
    if ended_already:
        assert who == [1.0] * 4 and saved == {"step": 4, "who": 1}
    else:
        assert who[-1] == 2.0 and saved == {"step": 4, "who": 2}
