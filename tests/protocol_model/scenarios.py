"""One small world for each rule, in which a promise breaks without it; and larger ones where all are kept.

A scenario names the promise that breaks first, so that a rule which comes to guard something else is
noticed; docs/protocol.md shows the same table.
"""

from __future__ import annotations

from dataclasses import dataclass

from protocol_model.check import Report, search
from protocol_model.gangs import GangWorld, Gathering
from protocol_model.packs import Packing, PackWorld
from protocol_model.protocol import ProtocolMachine
from protocol_model.rules import Rules
from protocol_model.watch import Watching
from protocol_model.world import World


@dataclass(frozen=True)
class Scenario:
    rule: str
    broken: str  # the promise that breaks without the rule
    harm: str  # in words, for docs/protocol.md
    world: World | GangWorld | PackWorld | None  # None: the world of the watch


ZOMBIE = World(freezes=1)
TAKEN_OVER = World(crashes=1)
LOST_ANSWER = World(faults=1)
REFUSED = World(faults=1, fault_kinds=("conflict",))
RIVALS = GangWorld(nodes=(2, 2))
LOSS = GangWorld(crashes=1)
THREE = GangWorld(workers=3)
PACKED = PackWorld(freezes=1, packs=1)
RIVAL_PACKERS = PackWorld(workers=1, packers=2, reopens=1)
RETRIED = PackWorld(workers=1, reopens=1, packs=1)

SCENARIOS = (
    Scenario("put_if_absent", "P1", "two workers decide the same entry", World()),
    Scenario(
        "settle_by_token", "P5", "a worker drops a claim that stands; nobody may take the run", LOST_ANSWER
    ),
    Scenario("settle_before_next", "P1", "the log gets a hole, and what is behind it is not read", REFUSED),
    Scenario(
        "retry_same_token", "P5", "a late first put makes its own author believe that it lost", LOST_ANSWER
    ),
    Scenario("redecide_after_loss", "P1", "a claim lands on a run that somebody has just taken", World()),
    Scenario("claim_fences", "P1", "a zombie ends the run that another attempt holds", ZOMBIE),
    Scenario("end_is_log_entry", "P1", "a zombie's end stands while its successor holds the run", ZOMBIE),
    Scenario("reopen_needs_end", "P1", "a run that has not ended is queued anew", World(person=("reopen",))),
    Scenario("unseen_beat_is_still", "P5", "a worker killed before its first beat keeps the run", TAKEN_OVER),
    Scenario(
        "new_session_each_start",
        "P5",
        "the restarted worker's beats keep its dead claim alive",
        World(workers=1, crashes=1, restarts=True),
    ),
    Scenario("late_reads_head", "P9", "a worker that slept writes into a run that is another's", ZOMBIE),
    Scenario("stays_while_held", "P5", "the holder dies when everybody else has left", TAKEN_OVER),
    Scenario("commit_last", "P3", "a COMMIT without files is the newest", World()),
    Scenario("commit_first_on_delete", "P3", "a checkpoint half deleted looks damaged", ZOMBIE),
    Scenario(
        "newest_by_attempt_then_step",
        "P3",
        "a zombie's checkpoint beats its successor's",
        World(freezes=1, crashes=1, claims=3, steps=3, may_skip_saves=True),
    ),
    Scenario("vanished_is_not_damage", "P3", "a checkpoint deleted meanwhile is reported as damaged", ZOMBIE),
    Scenario("keep_later_attempts", "P6", "a zombie deletes its successor's checkpoints", ZOMBIE),
    Scenario(
        "keep_until_own",
        "P6",
        "an attempt deletes what it came from before it has saved anything",
        TAKEN_OVER,
    ),
    Scenario("metrics_before_commit", "P4", "a COMMIT covers a step whose metrics are not there", TAKEN_OVER),
    Scenario(
        "chain_reading", "P4", "steps that were thrown away are shown, and then shown twice", TAKEN_OVER
    ),
    Scenario("first_fragment_names_source", "P4", "steps that were thrown away are shown", TAKEN_OVER),
    Scenario(
        "ender_names_source",
        "P4",
        "the curve shown is not the one of the result",
        World(freezes=1, crashes=1, claims=3),
    ),
    Scenario("finished_commit_ends", "P2", "a finished run is started again", TAKEN_OVER),
    Scenario(
        "stop_seen_by_taker",
        "P7",
        "a stop dies with the attempt it was meant for",
        World(crashes=1, person=("stop",)),
    ),
    Scenario("watch_restarts_after_gap", "P8", "a watcher that slept calls a live worker stale", None),
    Scenario("own_clock", "P8", "a clock that is wrong calls a live worker stale", None),
    Scenario("stamp_before_send", "P8", "an old answer, judged later, calls a live worker stale", None),
    Scenario("yields_to_older", "P5", "two gangs form at once and wait for each other's workers", RIVALS),
    Scenario("go_when_full", "P10", "some ranks train while others have not come", THREE),
    Scenario(
        "go_names_members",
        "P10",
        "a worker that comes after the go trains as a rank that is taken",
        GangWorld(workers=3, crashes=1, claims=2),
    ),
    Scenario(
        "releases_at_timeout",
        "P5",
        "workers wait for ever for one that never comes",
        GangWorld(workers=3, nodes=(3,), crashes=1, timeouts=True, claims=6, restarts=False),
    ),
    Scenario("releases_when_rank_lost", "P5", "the others wait for a rank that is gone", LOSS),
    Scenario("leaves_with_leader", "P5", "ranks stay with a leader that is gone", LOSS),
    Scenario("commit_after_parts", "P3", "a COMMIT stands without a rank's part", THREE),
    Scenario("leader_alone_ends", "P10", "a run ends while some of its ranks still train", THREE),
    Scenario("seal_before_delete", "P11", "a packer that is killed leaves a run without its log", PACKED),
    Scenario("pause_before_delete", "P1", "a worker creates an entry anew where a packed one was", PACKED),
    Scenario("pack_hides_late_writes", "P11", "a zombie's entry is read in place of the packed one", PACKED),
    Scenario("looks_after_create", "P1", "a zombie believes that it decided a packed entry", PACKED),
    Scenario("later_entries_count", "P11", "the retry of a packed run is not seen", RETRIED),
    Scenario("packs_ended_alone", "P4", "points of an attempt that still runs are not seen", PACKED),
    Scenario("log_read_first", "P4", "the last points of a run are not in its pack", PACKED),
    Scenario(
        "seal_follows_what_was_read",
        "P4",
        "a packer that slept hides what came after it",
        RIVAL_PACKERS,
    ),
    Scenario(
        "drops_older_packs_alone",
        "P11",
        "a packer that slept seals a pack that is gone",
        RIVAL_PACKERS,
    ),
)

BROAD = (
    World(runs=2, crashes=1, claims=2, steps=1),
    World(freezes=1, crashes=1, claims=3, may_skip_saves=True),
    World(faults=1, steps=1, person=("stop", "reopen")),
    World(freezes=1, steps=1, person=("stop",)),
    World(crashes=1, steps=1, preemptions=1, person=("stop",)),
    World(crashes=1, restarts=True, preemptions=1, keep=2, steps=3),
    World(tenants=True, steps=1, person=("stop",)),
    World(tenants=True, freezes=1),
    World(tenants=True, steps=1, faults=1),
    World(workers=3, tenants=True, steps=1),
    GangWorld(workers=3, nodes=(2,), crashes=1, timeouts=True, claims=3),
    GangWorld(workers=2, nodes=(2, 2), crashes=1, claims=6),
    PackWorld(workers=1, reopens=1, kills=1),
)

SOAK = (
    World(freezes=1, crashes=1, claims=3, steps=3, may_skip_saves=True),
    World(faults=1, crashes=1, person=("stop",)),
    World(freezes=1, person=("stop",)),
    World(crashes=1, preemptions=1, person=("stop",)),
    World(crashes=1, claims=3, restarts=True, preemptions=1, keep=2, steps=3),
    World(tenants=True, person=("stop",)),
    World(tenants=True, faults=1),
    World(workers=3, tenants=True, claims=3, steps=1),
    GangWorld(workers=3, nodes=(2,), crashes=2, timeouts=True, claims=3),
    World(faults=1, crashes=1, person=("stop", "reopen")),
    World(freezes=1, preemptions=1, claims=3, person=("stop",)),
    World(workers=3, freezes=1, crashes=1, claims=3),
    World(freezes=2, crashes=1, claims=3, steps=3, may_skip_saves=True),
    World(freezes=1, faults=1, crashes=1, claims=3),
    World(faults=2, person=("stop", "reopen")),
    World(runs=2, freezes=1, crashes=1, steps=1),
    PackWorld(freezes=1, kills=1, packs=1),
    PackWorld(reopens=1, freezes=1, packs=1),
    PackWorld(packers=2, freezes=1),
    RIVAL_PACKERS,
)


def examine(
    world: World | GangWorld | PackWorld | None, rules: Rules | None = None, limit: int = 2_000_000
) -> Report:
    """Searches one world (None: that of the watch) under these rules, all of them by default."""
    rules = rules or Rules()
    if world is None:
        return search(Watching(rules), limit)
    if isinstance(world, GangWorld):
        return search(Gathering(world, rules), limit)
    if isinstance(world, PackWorld):
        return search(Packing(world, rules), limit)
    return search(ProtocolMachine(world, rules), limit)
