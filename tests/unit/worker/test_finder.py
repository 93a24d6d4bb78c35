"""What a worker takes, and what it makes of the runs it does not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from hostler.errors import NewerFormatError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.packs.packed_store import PackedStore
from hostler.records.run import control, heartbeats
from hostler.records.run.history import tries
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec import spans
from hostler.spec.job import Job, Resources, Source, to_json
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder, Found
from hostler.worker.claim.session_watch import SessionWatch
from hostler.worker.session_name import new_session

LEASE = 60.0


class Scene:
    def __init__(self, *jobs: Job) -> None:
        self.now = 0.0
        self.store = MemoryStore(clock=lambda: self.now)
        self.jobs = jobs
        for job in jobs:
            sweeps.submit(self.store, job)

    def finder(self, session: str = "me", **given: Any) -> Finder:
        facts = {"host": "h", "restarts": given.pop("restarts", False), "job": given.pop("job", "")}
        fate = given.pop("fate", lambda job: "")
        claimant = Claimant(session, facts, frozenset(given.pop("dead", ())), fate=fate)
        return Finder(
            self.store,
            claimant,
            Timing(lease=LEASE),
            lambda: self.now,
            rng=random.Random(1),
            **given,
        )

    def find(self, finder: Finder, fits: bool = True, ever: bool = True) -> Found:
        return finder.find(lambda ask: fits, lambda ask: ever, whole=True)

    def key(self, index: int = 0, job: int = 0) -> RunKey:
        return RunKey(self.jobs[job].name, self.jobs[job].run_id(index))

    def past_a_lease(self, finder: Finder) -> Found:
        """Looks often enough to trust the watch, until a lease has passed."""
        for _ in range(7):
            found = self.find(finder, fits=False)
            self.now += LEASE / 5
        return found

    def state(self, index: int = 0) -> Any:
        return control.state_of(self.store, self.key(index))


def job(name: str = "j", count: int = 1, **given: Any) -> Job:
    return Job(name=name, command=("x",), runs=tuple({"n": n} for n in range(count)), **given)


def test_a_queued_run_is_taken_once() -> None:
    scene = Scene(job())
    first = scene.find(scene.finder("a"))
    assert first.taken and first.taken.attempt.number == 1 and scene.state().session == "a"
    second = scene.find(scene.finder("b"))
    assert second.taken is None and second.unheld == 1 and second.open == 1


def test_run_that_fits_later_is_takeable_and_otherwise_unfit() -> None:
    scene = Scene(job())
    assert scene.find(scene.finder(), fits=False).takeable == 1
    assert scene.find(scene.finder(), ever=False).unfit == 1 and scene.state().state == "queued"


def test_run_of_a_restarting_worker_or_mine_counts_as_held() -> None:
    scene = Scene(job())
    scene.find(scene.finder("other", restarts=True))
    finder = scene.finder("me")
    for n in range(3):
        heartbeats.beat(scene.store, "other", n, {})
        found = scene.find(finder)
        scene.now += 1.0
    assert found.held == 1 and found.unheld == 0
    mine = Scene(job())
    finder = mine.finder("me")
    mine.find(finder)
    assert mine.find(finder).held == 1


def test_holder_that_stands_still_for_a_lease_loses_its_run() -> None:
    scene = Scene(job())
    heartbeats.beat(scene.store, "other", 1, {})
    scene.find(scene.finder("other"))
    finder = scene.finder("me")
    scene.now = LEASE - 1
    assert scene.find(finder).taken is None, "it has been watched for a moment only"
    scene.past_a_lease(finder)
    found = scene.find(finder)
    assert found.taken and scene.state().tally.lost == 1 and scene.state().session == "me"


def fates_after(scene: Scene, times: int, fate: str) -> list[str]:
    """How the attempts of a run ended, as its history tells, if its workers die so one after the other."""
    for n in range(times):
        given = {"job": f"slurm tau 71_{n}", "fate": {f"slurm tau 71_{n - 1}": fate}.get}
        finder = scene.finder(f"s{n}", dead=[f"s{n - 1}"], **given)
        scene.find(finder)
    return [one.words for one in tries(RunLog(scene.store, scene.key()).read_on().entries)]


@pytest.mark.parametrize("fate", ["memory", "preempted", "timeout", "node-fail", "cancelled"])
def test_lost_attempt_ends_as_its_platform_says(fate: str) -> None:
    scene = Scene(job(retries=3))
    assert fates_after(scene, 2, fate) == [fate, "running"]
    tally = scene.state().tally
    assert (tally.failures, tally.lost) == ((1, 0) if fate == "memory" else (0, 1))
    assert scene.state().failure is None or "more memory" in scene.state().failure["message"]


def test_run_killed_for_memory_too_often_fails_as_memory() -> None:
    scene = Scene(job(retries=1))
    fates_after(scene, 3, "memory")
    state = scene.state()
    assert state.state == "failed" and state.failure["kind"] == "memory"
    assert "failed 2 times" in state.failure["message"] and "resources.memory" in state.failure["advice"]


def test_a_holder_that_beats_keeps_its_run() -> None:
    scene = Scene(job())
    scene.find(scene.finder("other"))
    finder = scene.finder("me")
    for n in range(20):
        heartbeats.beat(scene.store, "other", n, {})
        assert scene.find(finder).taken is None
        scene.now += LEASE / 5


def watched(scene: Scene, finder_of: str = "me") -> tuple[Finder, SessionWatch]:
    timing, claimant = Timing(lease=LEASE), Claimant(finder_of, {"host": "h"})
    watch = SessionWatch(scene.store, claimant, timing, lambda: scene.now)
    finder = Finder(scene.store, claimant, timing, lambda: scene.now, rng=random.Random(1), watch=watch)
    return finder, watch


def test_lost_run_is_taken_before_fresh_ones_by_a_busy_worker() -> None:
    scene = Scene(job(count=20))
    heartbeats.beat(scene.store, "other", 1, {})
    assert scene.finder("other").find(lambda ask: True, lambda ask: True).taken
    finder, watch = watched(scene)
    lost = next(n for n in range(20) if scene.state(n).session == "other")
    assert finder.find(lambda ask: True, lambda ask: True).taken
    for _ in range(7):  # it carries that run out, and looks for no other
        watch.beat()
        scene.now += 10.0
    found = finder.find(lambda ask: True, lambda ask: True)
    assert found.taken and found.taken.attempt.key.index == lost


def test_all_runs_of_a_lost_worker_go_before_fresh_ones() -> None:
    scene = Scene(job(count=20))
    heartbeats.beat(scene.store, "other", 1, {})
    other = scene.finder("other")
    held = {other.find(lambda ask: True, lambda ask: True).taken.attempt.key.run for _ in range(3)}  # type: ignore[union-attr]
    finder, watch = watched(scene)
    for _ in range(7):
        watch.beat()
        scene.now += 10.0
    taken = [finder.find(lambda ask: True, lambda ask: True).taken for _ in range(4)]
    assert {one.attempt.key.run for one in taken[:3] if one} == held
    assert taken[3] and taken[3].attempt.key.run not in held


def test_lost_worker_without_runs_costs_one_deep_look() -> None:
    scene = Scene(job(count=20))
    heartbeats.beat(scene.store, "idle", 1, {})
    finder, watch = watched(scene)
    finder.find(lambda ask: True, lambda ask: True)
    for _ in range(7):
        watch.beat()
        scene.now += 10.0
    asked: list[str] = []
    scene.store.before = lambda operation, key: asked.append(key)
    for _ in range(3):
        finder.find(lambda ask: True, lambda ask: True)
    assert sum(key == "alive/" for key in asked) == 1


def test_search_for_lost_runs_leaves_fresh_ones() -> None:
    scene = Scene(job(count=2))
    scene.find(scene.finder("other"))
    finder = scene.finder("me", dead=["other"])
    found = finder.find(lambda ask: True, lambda ask: True, lost=True)
    assert found.taken and scene.state(found.taken.attempt.key.index).tally.lost == 1
    assert finder.find(lambda ask: True, lambda ask: True, lost=True).taken is None


def test_run_whose_holder_misses_beats_counts_as_silent() -> None:
    scene = Scene(job())
    heartbeats.beat(scene.store, "other", 1, {})
    scene.find(scene.finder("other", restarts=True))
    finder, watch = watched(scene)
    for n in range(2, 4):
        heartbeats.beat(scene.store, "other", n, {})
        watch.beat()
        scene.now += 10.0
    assert scene.find(finder).silent == 0
    scene.now += 15.0
    found = scene.find(finder)
    assert (found.silent, found.held) == (1, 1)


def test_successor_in_a_place_takes_its_predecessors_run_at_once() -> None:
    before, here = (new_session("h", "71_2", n) for n in (0, 1))
    scene = Scene(job(count=9))
    heartbeats.beat(scene.store, before, 1, {})
    lost = scene.finder(before).find(lambda ask: True, lambda ask: True).taken
    finder, watch = watched(scene, here)
    scene.now += 15.0
    heartbeats.beat(scene.store, here, 1, {})
    watch.beat()
    found = finder.find(lambda ask: True, lambda ask: True)
    assert lost and found.taken and found.taken.attempt.key == lost.attempt.key


def test_session_that_the_parent_saw_dead_needs_no_wait() -> None:
    scene = Scene(job())
    scene.find(scene.finder("other"))
    assert scene.find(scene.finder("me", dead=["other"])).taken


def test_progress_of_a_lost_attempt_clears_what_counted_before() -> None:
    scene = Scene(job())
    for n in range(3):
        assert scene.find(scene.finder(f"s{n}", dead=[f"s{n - 1}"])).taken
    assert scene.state().tally.lost == 2
    place = Place(scene.state().attempt, 1)
    scene.store.put(layout.commit(scene.key().run, place.attempt, place.step), encode({}))
    assert scene.find(scene.finder("s3", dead=["s2"])).taken
    assert scene.state().tally.lost == 0


def test_a_run_lost_six_times_without_progress_fails() -> None:
    scene = Scene(job())
    for n in range(6):
        assert scene.find(scene.finder(f"s{n}", dead=[f"s{n - 1}"])).taken
    assert scene.find(scene.finder("last", dead=["s5"])).taken is None
    state = scene.state()
    assert state.state == "failed" and "lost 6 times" in state.failure["message"]
    assert list(scene.store.list(layout.ends("j"))), "readers see it"


@pytest.mark.parametrize(("ask", "then"), [(control.stop, "stopped"), (control.pause, "paused")])
def test_stop_request_of_a_dead_holder_is_answered_by_next(ask: Any, then: str) -> None:
    scene = Scene(job())
    scene.find(scene.finder("gone"))
    ask(scene.store, scene.key())
    assert scene.find(scene.finder("me", dead=["gone"])).taken is None
    assert scene.state().state == then


def test_a_halted_sweep_is_named_and_its_runs_left() -> None:
    scene = Scene(job("a"), job("b"))
    sweeps.halt(scene.store, "a", "why")
    found = scene.find(scene.finder())
    assert found.halted == ("a",) and found.taken and found.taken.job.name == "b"


def test_the_higher_priority_goes_first() -> None:
    scene = Scene(job("a"), job("z", priority=5))
    found = scene.find(scene.finder())
    assert found.taken and found.taken.job.name == "z"


def test_only_the_first_few_are_reached_for() -> None:
    scene = Scene(job(count=50))
    heartbeats.beat(scene.store, "me", 1, {})
    seen = set()
    for seed in range(20):
        finder = scene.finder(f"s{seed}")
        found = scene.find(finder)
        assert found.taken
        seen.add(found.taken.attempt.key.index)
    assert seen <= set(range(24)), "a window over the oldest, not all of the sweep"


def test_sweep_that_does_not_fit_does_not_hide_another() -> None:
    scene = Scene(job("a", resources=Resources(cpus=9)), job("b"))
    finder = scene.finder()
    found = finder.find(lambda job: job.resources.cpus is None, lambda ask: True, whole=True)
    assert found.taken and found.taken.job.name == "b"


def test_entry_of_a_newer_version_is_skipped_and_others_done() -> None:
    scene = Scene(job("b"))
    scene.store.put(layout.spec("a", 1), encode({**to_json(job("a")), "format": 99}))
    found = scene.find(scene.finder())
    assert found.taken and found.taken.job.name == "b" and found.newer == ("a",)
    with pytest.raises(NewerFormatError):
        sweeps.load(scene.store, "a")


@pytest.mark.parametrize("whole", [True, False])
def test_sweep_whose_seal_is_damaged_is_skipped_and_others_done(whole: bool) -> None:
    scene = Scene(job("a"), job("b"))
    scene.store.put(layout.seal("a", 1), b"HSTL")
    finder = Finder(
        PackedStore(scene.store), Claimant("me", {"host": "h"}), Timing(lease=LEASE), lambda: scene.now
    )
    found = finder.find(lambda ask: True, lambda ask: True, whole=whole)
    assert found.taken and found.taken.job.name == "b"


def test_an_entry_that_came_after_the_look_is_respected() -> None:
    scene = Scene(job())
    finder = scene.finder()
    scene.find(finder, fits=False)
    RunLog(scene.store, scene.key()).append({"kind": "claim", "session": "faster"})
    assert scene.find(finder).taken is None and scene.state().session == "faster"


def test_returned_run_is_taken_within_a_lease_despite_untouched_ones() -> None:
    scene = Scene(job(count=50))
    given = scene.find(scene.finder("other")).taken
    assert given
    given.attempt.release(then="queued")
    finder = scene.finder("me")

    def next_run() -> str:
        taken = finder.find(lambda ask: True, lambda ask: True).taken
        assert taken
        return taken.attempt.key.run

    before = {next_run() for _ in range(5)}
    assert given.attempt.key.run not in before, "a glance sees only what nobody has touched"
    scene.now += LEASE
    assert next_run() == given.attempt.key.run


def bounded(parallel: int, count: int = 5) -> Job:
    return Job(name="s", command=("x",), runs=tuple({"i": i} for i in range(count)), parallel=parallel)


def test_sweep_at_its_parallel_limit_is_waited_for_not_left() -> None:
    scene = Scene(bounded(1))
    first = scene.find(scene.finder("a"))
    assert first.taken
    other = scene.finder("b")
    found = scene.find(other)
    assert found.taken is None
    assert found.takeable == 4
    first.taken.attempt.end("done")
    assert scene.find(other).taken


def test_who_waits_for_a_turn_writes_nothing() -> None:
    scene = Scene(bounded(1))
    assert scene.find(scene.finder("a")).taken
    other = scene.finder("b")
    before = {entry.key for entry in scene.store.list("")}
    for _ in range(3):
        assert scene.find(other).taken is None
    assert {entry.key for entry in scene.store.list("")} == before


def test_lost_run_is_taken_over_though_no_other_may_start() -> None:
    scene = Scene(bounded(1))
    assert scene.find(scene.finder("dead")).taken
    finder = scene.finder("b")
    scene.past_a_lease(finder)
    found = scene.find(finder)
    assert found.taken and found.taken.attempt.number == 2
    assert scene.find(scene.finder("c")).taken is None


def test_raised_bound_is_known_at_the_next_look() -> None:
    scene = Scene(bounded(1))
    assert scene.find(scene.finder("a")).taken
    other = scene.finder("b")
    assert scene.find(other).taken is None
    sweeps.submit(scene.store, bounded(2), 2)
    assert scene.find(other).taken


def test_full_sweep_does_not_keep_another_from_being_served() -> None:
    scene = Scene(bounded(1), Job(name="t", command=("x",)))
    finder = scene.finder("a")
    taken = [scene.find(finder).taken for _ in range(2)]
    names = sorted(one.attempt.key.sweep for one in taken if one)
    assert names == ["s", "t"]


def test_claim_names_its_code_and_a_later_submission_keeps_it() -> None:
    job = Job(name="s", command=("x",), runs=({"i": 0}, {"i": 1}), source=Source(snapshot="old"))
    scene = Scene(job)
    taken = scene.find(scene.finder("a")).taken
    assert taken and taken.attempt.state.claim
    assert taken.attempt.state.claim["source"]["snapshot"] == "old"
    taken.attempt.release(then="queued")
    sweeps.submit(scene.store, replace(job, source=Source(snapshot="new")), 2)
    again = [scene.find(scene.finder("b")).taken for _ in range(2)]
    codes = {one.attempt.key.index: one.attempt.state.claim["source"]["snapshot"] for one in again if one}  # type: ignore[index]
    assert codes[taken.attempt.key.index] == "old"
    assert set(codes.values()) == {"old", "new"}


def glance(finder: Finder) -> Found:
    return finder.find(lambda ask: True, lambda ask: True)


def test_run_dropped_by_an_edit_is_not_started_from_memory() -> None:
    given = job(count=40)
    scene = Scene(given)
    finder = scene.finder()
    assert (first := glance(finder).taken) and first.attempt.key.index == 0
    sweeps.submit(scene.store, replace(given, dropped=spans.of(range(1, 40))), version=2)
    scene.now += 1.0  # a beat is ten
    assert glance(finder).taken is None
    scene.now += 20.0
    assert glance(finder).taken is None
    assert not list(scene.store.list(layout.logs_of("j"), layout.log_entry("j", given.run_id(1), 0)))


def test_new_run_of_a_round_replaces_the_dropped_ones() -> None:
    given = job(count=3)
    scene = Scene(given)
    finder = scene.finder()
    assert glance(finder).taken
    later = replace(given, runs=(*given.runs, {"n": 3}), dropped=spans.of([1, 2]))
    sweeps.submit(scene.store, later, version=2)
    scene.now += 1.0
    assert (taken := glance(finder).taken) and taken.attempt.key.index == 3


def test_a_halt_is_seen_before_the_next_claim() -> None:
    scene = Scene(job(count=9))
    finder = scene.finder()
    assert glance(finder).taken
    sweeps.halt(scene.store, "j", "enough")
    scene.now += 1.0
    found = glance(finder)
    assert found.taken is None and found.halted == ("j",)


def test_looking_for_edits_costs_two_requests_a_second() -> None:
    scene = Scene(job(count=100))
    finder, asked = scene.finder(), list[str]()
    assert glance(finder).taken
    scene.store.before = lambda operation, key: asked.append(key)
    for _ in range(60):
        scene.now += 0.05
        assert glance(finder).taken
    assert sum("/spec" in key for key in asked) <= 3
    assert sum("/halts" in key for key in asked) <= 3


def test_claim_of_a_lost_run_says_how_long_it_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, clock = Scene(job()), iter([100.0, 107.5])
    with monkeypatch.context() as patched:
        patched.setattr("hostler.records.body.time.time", lambda: next(clock, 200.0))
        scene.find(scene.finder("other"))
        heartbeats.beat(scene.store, "other", 1, {})
    claimed = RunLog(scene.store, scene.key()).read_on().entries[0]
    beat = heartbeats.read(scene.store, "other")
    assert beat is not None
    finder = scene.finder("me")
    scene.past_a_lease(finder)
    assert scene.find(finder).taken
    assert scene.state().spent == pytest.approx(beat["at"] - claimed["at"])


def test_run_that_failed_by_being_lost_has_its_time() -> None:
    scene = Scene(job())
    heartbeats.beat(scene.store, "other", 1, {})
    held = scene.find(scene.finder("other")).taken
    assert held is not None
    control.stop(scene.store, scene.key())
    finder = scene.finder("me")
    scene.past_a_lease(finder)
    scene.find(finder)
    end = scene.state().end
    assert end is not None and end["state"] == "stopped" and end["seconds"] >= 0.0
