"""What a person may do to a run, in each of its states."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from hostler.errors import Fenced
from hostler.records import layout
from hostler.records.run import control
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.spec.states import ALL
from hostler.store import Store
from hostler.store.memory import MemoryStore

KEY = RunKey("s", "0000000-s-abc")


def take(store: Store) -> Attempt:
    attempt = claim(store, RunLog(store, KEY).read_on(), 60.0, lambda: 0.0, Claim("a", facts={"host": "h"}))
    assert attempt is not None
    return attempt


def bring_to(store: Store, state: str) -> None:
    if state == "running":
        take(store)
    elif state == "paused":
        control.pause(store, KEY)
    elif state == "stopped":
        control.stop(store, KEY)
    elif state != "queued":
        take(store).end(state)
    assert state_of(store) == state


def state_of(store: Store) -> str:
    return control.state_of(store, KEY).state


@pytest.mark.parametrize(
    ("verb", "changes"),
    [
        (control.stop, {"queued": "stopped", "paused": "stopped", "running": "running"}),
        (control.kill, {"queued": "stopped", "paused": "stopped", "running": "stopped"}),
        (control.pause, {"queued": "paused", "running": "running"}),
        (control.resume, {"stopped": "queued", "paused": "queued"}),
        (control.retry, {"failed": "queued", "diverged": "queued"}),
    ],
)
@pytest.mark.parametrize("state", ALL)
def test_each_verb_changes_what_it_is_for_and_nothing_else(
    memory: MemoryStore, verb: Callable[[Store, RunKey], str], changes: dict[str, str], state: str
) -> None:
    bring_to(memory, state)
    before = len(control.entries_of(memory, KEY))
    said = verb(memory, KEY)
    assert state_of(memory) == changes.get(state, state), said
    assert (len(control.entries_of(memory, KEY)) > before) == (state in changes), said
    assert (said in control.DONE_SO) == (state in changes)


def test_a_running_run_is_asked_to_stop_once(store: Store) -> None:
    attempt = take(store)
    assert control.stop(store, KEY, by="me") == "asked to save and stop"
    assert control.stop(store, KEY) == "already asked to stop"
    assert attempt.look() == "person"
    assert control.state_of(store, KEY).stop == "person"


def test_who_asked_to_pause_may_still_ask_to_stop(store: Store) -> None:
    attempt = take(store)
    control.pause(store, KEY)
    assert control.pause(store, KEY) == "already asked to pause"
    assert control.stop(store, KEY) == "asked to save and stop"
    attempt.release(then="paused", why="pause")
    assert state_of(store) == "stopped"


def test_killed_run_has_ended_for_its_holder_and_for_readers(store: Store) -> None:
    attempt = take(store)
    assert control.kill(store, KEY) == "stopped"
    with pytest.raises(Fenced):
        attempt.end("done")
    assert [entry.key for entry in store.list(layout.ends("s"))] == [layout.end("s", KEY.run, 2)]
    end = control.state_of(store, KEY).end or {}
    assert (end["attempt"], end["attempts"], end["host"], end["why"]) == (1, 1, "h", "person")


def test_a_lost_run_is_queued_again_and_its_holder_fenced(store: Store) -> None:
    attempt = take(store)
    assert control.retry(store, KEY, lost=True) == "queued again"
    with pytest.raises(Fenced):
        attempt.look()
    assert control.state_of(store, KEY).session is None


def test_fresh_retry_reopens_all_ended_runs_with_its_code(store: Store) -> None:
    bring_to(store, "done")
    assert control.retry(store, KEY, source={"snapshot": "new"}, fresh=True) == "queued again"
    state = control.state_of(store, KEY)
    assert (state.fresh_from, (state.reopened or {})["source"]) == (3, {"snapshot": "new"})


def test_of_many_who_stop_a_queued_run_one_ends_it(store: Store) -> None:
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(control.stop(store, KEY))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["already stopped"] * 5 + ["stopped"]
    assert len(control.entries_of(store, KEY)) == 1


def test_stopped_run_keeps_the_time_of_its_attempts(store: Store) -> None:
    take(store).release(then="queued", seconds=5.0)
    control.stop(store, KEY)
    end = control.state_of(store, KEY).end
    assert end is not None and end["total"] == 5.0
