"""A gang in the store: slots are given out once, and what was said is read back."""

from __future__ import annotations

from hostler.records.run import gang as gangs
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.gang import Gang, GangNode, GangStart
from hostler.records.series.logs import LogReader, LogWriter
from hostler.records.series.metrics import MetricWriter, Origin, read
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.spec.job import Job, Resources
from hostler.store import open_store
from hostler.worker.gang.rendezvous import Rendezvous


def test_slots_go_in_order_of_arrival_up_to_their_number() -> None:
    store = open_store("memory:")
    one = Gang(store, "0000000-run-abc", 1)
    one.lead({"session": "s0", "host": "a"})
    slots = [Gang(store, "0000000-run-abc", 1).join({"session": f"s{n}"}, 3) for n in (1, 2, 3)]
    assert slots == [1, 2, None]
    one.note(1, gangs.EXIT, {"message": "gone"})
    assert Gang(store, "0000000-run-abc", 1).join({"session": "s4"}, 3) == 3
    assert [member.session for member in one.look().here] == ["s2", "s4"]


def test_nobody_joins_after_the_go_and_ranks_have_no_holes() -> None:
    store = open_store("memory:")
    one = Gang(store, "0000000-run-abc", 1)
    nodes = tuple(GangNode(slot, f"s{slot}", "h", "127.0.0.1", (5000,)) for slot in (0, 2, 3))
    one.go(GangStart(nodes, 6000, "secret"))
    found = Gang(store, "0000000-run-abc", 1).look().go
    assert found == GangStart(nodes, 6000, "secret")
    assert [found.rank_of(slot) for slot in (0, 1, 2, 3)] == [0, None, 1, 2]
    assert one.join({"session": "late"}, 9) is None


def test_output_of_other_nodes_is_followed_despite_earlier_names() -> None:
    store = open_store("memory:")
    first, second = (LogWriter(store, "run", 1, rank) for rank in (0, 1))
    reader = LogReader(store, "run")
    first.write(b"a\n")
    second.write(b"b\n")
    assert b"".join(piece.data for piece in reader.read()) == b"a\nb\n"
    first.write(b"c\n")
    second.write(b"d\n")
    assert b"".join(piece.data for piece in reader.read()) == b"c\nd\n"
    LogWriter(store, "run", 2, 1).write(b"e\n")
    assert b"".join(piece.data for piece in reader.read()) == b"e\n"
    LogWriter(store, "run", 2, 0).write(b"f\n")  # the first word of one whose name comes before
    assert b"".join(piece.data for piece in reader.read()) == b"f\n"
    assert list(reader.read()) == []


def test_a_checkpoint_covers_the_points_of_each_node() -> None:
    store = open_store("memory:")
    for rank in (0, 1):
        MetricWriter(store, "run", 1, rank).write([Point(n, 0.0, {f"loss{rank}": n}) for n in range(4)])
    later = MetricWriter(store, "run", 3, 0)
    later.continue_from(Origin(1, 5, 2, {"1": 3}))
    found = read(store, "run", 3)
    assert [p.step for p in found if "loss0" in p.values] == [0, 1]
    assert [p.step for p in found if "loss1" in p.values] == [0, 1, 2]


def test_points_of_nodes_no_checkpoint_counts_reach_its_last_step() -> None:
    """As a plain script leaves them: rank 0's files are the checkpoint, and the others only print."""
    store = open_store("memory:")
    for rank in (0, 1):
        MetricWriter(store, "run", 1, rank).write([Point(n, 0.0, {f"loss{rank}": n}) for n in range(4)])
    later = MetricWriter(store, "run", 3, 0)
    later.continue_from(Origin(1, 5, 2))
    MetricWriter(store, "run", 3, 1).write([Point(n, 0.0, {"loss1": n}) for n in (2, 3)])
    found = read(store, "run", 3)
    assert [p.step for p in found if "loss0" in p.values] == [0, 1]
    assert [p.step for p in found if "loss1" in p.values] == [0, 1, 2, 3]


def test_only_a_node_taken_for_dead_may_join_again() -> None:
    store = open_store("memory:")
    job = Job(name="job", command=("true",), resources=Resources(nodes=3))
    assert sweeps.submit(store, job)
    queue = Queue(store, job)
    run_log = queue.log(job.run_id(0))
    assert claim(store, run_log, 10.0, lambda: 0.0, Claim("s0", facts={"at": 1.0})) is not None
    one = Gang(store, job.run_id(0), 1)
    for session in ("slept", "failed"):
        assert one.join({"session": session}, 3)
    one.note(1, gangs.EXIT, {"kind": "rank-lost"})
    one.note(2, gangs.EXIT, {"kind": "prepare"})
    opens = [(queue, run) for run in queue.open()]
    found = {who: Rendezvous(store, who).forming(opens) for who in ("slept", "failed", "s0", "other")}
    assert [len(found[who]) for who in ("slept", "failed", "s0", "other")] == [1, 0, 0, 1]
    one.go(GangStart((), 0))
    assert Rendezvous(store, "other").forming(opens) == []
