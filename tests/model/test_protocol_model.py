"""The protocol's promises, searched for holes: all rules keep them, and each rule is there for one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol_model.check import Report, search
from protocol_model.fold import fold
from protocol_model.gangs import GangWorld
from protocol_model.packs import PackWorld
from protocol_model.protocol import ProtocolMachine
from protocol_model.rules import Rules, names
from protocol_model.scenarios import BROAD, SCENARIOS, SOAK, Scenario, examine
from protocol_model.watch import Watching
from protocol_model.world import State, World

DOC = Path(__file__).parents[2] / "docs" / "protocol.md"
WORLDS = tuple(dict.fromkeys(s.world for s in SCENARIOS if s.world and s.world not in SOAK)) + BROAD


@functools.cache
def examined(world: World | GangWorld | PackWorld) -> Report:
    """Under all rules: once, however many tests ask for it."""
    return examine(world)


def holds(report: Report, at_least: int) -> None:
    assert not report.wrong, str(report)
    assert report.states >= at_least


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_with_all_rules_every_promise_holds(world: World | GangWorld | PackWorld) -> None:
    holds(examined(world), at_least=80)


def test_the_broad_worlds_are_large() -> None:
    holds(examined(BROAD[1]), at_least=20_000)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("world", SOAK, ids=str)
def test_with_all_rules_every_promise_holds_in_large_worlds(world: World | GangWorld | PackWorld) -> None:
    holds(examine(world, limit=5_000_000), at_least=10_000)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.rule)
def test_without_this_rule_a_promise_breaks(scenario: Scenario) -> None:
    report = examine(scenario.world, Rules().without(scenario.rule))
    print(f"without {scenario.rule}: {report}")
    assert report.promise == scenario.broken, str(report)
    assert report.trace


def test_every_rule_has_a_scenario() -> None:
    assert sorted(s.rule for s in SCENARIOS) == sorted(names())


def test_live_worker_is_never_stale_however_the_watcher_sleeps() -> None:
    holds(search(Watching()), at_least=10_000)


def test_a_dead_worker_can_always_still_be_called_stale() -> None:
    holds(search(Watching(dead=True)), at_least=1_000)


def test_the_documented_table_is_the_tested_one() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (P\d+) \| (.+?) \|$", DOC.read_text(), re.MULTILINE)
    assert rows == [(s.rule, s.broken, s.harm) for s in SCENARIOS]


class Reaching(ProtocolMachine):
    """The same machine, in search of a state that must be there for the promises to mean something."""

    def broken(self, state: State) -> str:
        return "reached" if SIGHTS[self.sight](state) else ""

    sight = ""


def _zombie_committed(state: State) -> bool:
    run = state.runs[0]
    holder = fold(run.log).holder
    return any(s.commit and s.attempt < holder and s.place > run.truth.anchor for s in run.saved)


def _zombie_goes_on_from_its_successor(state: State) -> bool:
    return any(first.source[0] > first.attempt for first in state.runs[0].truth.sources)


def _vanished_while_restored(state: State) -> bool:
    return any(actor.todo[:1] == (("recheck",),) for actor in state.actors)


def _taker_ends_what_another_finished(state: State) -> bool:
    last = state.runs[0].log[-1] if state.runs[0].log else None
    return bool(last and last.result == "done" and last.source[0] != last.attempt)


def _taker_ends_what_a_person_stopped(state: State) -> bool:
    log = [entry for entry in state.runs[0].log if entry]
    return [e.kind for e in log] == ["claim", "stop", "claim", "end"] and log[-1].result == "stopped"


def _reopened_run_is_done(state: State) -> bool:
    now = fold(state.runs[0].log)
    return now.result == "done" and any(e and e.kind == "reopen" for e in state.runs[0].log)


def _living_predecessor_commits(state: State) -> bool:
    earlier = state.actors[0]
    return earlier.up == "up" and earlier.attempt > 0 and _zombie_committed(state)


SIGHTS: dict[str, Callable[[State], bool]] = {
    "a zombie commits after the fence": _zombie_committed,
    "a zombie goes on from its successor's checkpoint": _zombie_goes_on_from_its_successor,
    "a checkpoint vanishes while it is restored": _vanished_while_restored,
    "a taker ends what another finished": _taker_ends_what_another_finished,
    "a taker ends what a person stopped": _taker_ends_what_a_person_stopped,
    "a reopened run is done": _reopened_run_is_done,
    "a predecessor that lives commits after its successor's claim": _living_predecessor_commits,
}


@pytest.mark.parametrize(
    ("sight", "world"),
    [
        ("a zombie commits after the fence", World(freezes=1)),
        ("a zombie goes on from its successor's checkpoint", World(freezes=1)),
        ("a checkpoint vanishes while it is restored", World(freezes=1)),
        ("a taker ends what another finished", World(crashes=1)),
        ("a taker ends what a person stopped", World(crashes=1, person=("stop",))),
        ("a reopened run is done", World(person=("stop", "reopen"))),
        ("a predecessor that lives commits after its successor's claim", World(tenants=True)),
    ],
)
def test_the_worlds_reach(sight: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reaching, "sight", sight)
    assert search(Reaching(world)).wrong == "reached"
