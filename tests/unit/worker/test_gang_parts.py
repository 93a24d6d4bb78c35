"""The leader of a gang waits for parts of a checkpoint from those who can still bring them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hostler.attempt.saver import NotWhole
from hostler.attempt.status import AttemptStatus
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run import gang as gangs
from hostler.records.run.gang import Gang, GangNode, GangStart
from hostler.records.run.log import RunKey
from hostler.settings import Timing
from hostler.spec.job import Resources
from hostler.store.memory import MemoryStore
from hostler.worker.gang.leader import Leader
from hostler.worker.run.failure import Verdict
from hostler.worker.run.kinds import DONE, ERROR

RUN = "0000000-r"


class Scene:
    """A leader and two others; every look at a clock is a second later than the one before."""

    def __init__(self) -> None:
        self.store, self.now, self.said = MemoryStore(), 0.0, list[str]()
        attempt: Any = SimpleNamespace(key=RunKey("s", RUN), number=3)
        timing = Timing(beat=0.5, lease=60.0)
        machine: Any = SimpleNamespace(store=self.store, session="s0", timing=timing, clock=self.clock)
        job: Any = SimpleNamespace(resources=Resources(nodes=3))
        standing = AttemptStatus(attempt, timing, self.clock, self.said.append)
        self.leader = Leader(machine, job, attempt, standing, self.said.append)
        self.leader.go = GangStart(
            tuple(GangNode(n, f"s{n}", f"h{n}", "127.0.0.1", (1,)) for n in range(3)), 1
        )
        self.gang = Gang(self.store, RUN, 3)
        self.gang.lead({"session": "s0"})
        for slot in (1, 2):
            assert self.gang.join({"session": f"s{slot}", "host": f"h{slot}"}, 3) == slot
        self.collector = self.leader.collector()
        self.looks = list[Any]()  # what happens while the leader pauses, one after the other
        cast(Any, self.collector)._pause = self.pause

    def clock(self) -> float:
        self.now += 1
        return self.now

    def pause(self, seconds: float) -> None:
        for act in [self.looks.pop(0)] if self.looks else []:
            act()

    def ends(self, node: int, kind: str = DONE) -> None:
        self.gang.note(node, gangs.EXIT, vars(Verdict(kind, "as it did")))

    def brings(self, node: int) -> None:
        record = {"files": [{"name": f"of-{node}"}], "writer": node, "position": node}
        self.store.put(layout.checkpoint_part(RUN, 3, 11, node), encode(record))

    def collect(self) -> list[str]:
        assert self.collector is not None
        return sorted(row["name"] for row in self.collector.collect(Place(3, 11))[0])


def test_node_that_ended_without_its_part_is_not_waited_for() -> None:
    scene = Scene()
    scene.ends(1)
    scene.brings(2)
    with pytest.raises(NotWhole, match=r"nodes \[1\] ended without saving their parts"):
        scene.collect()


def test_node_that_delivers_and_ends_between_looks_has_delivered() -> None:
    scene = Scene()
    scene.brings(2)
    scene.looks = [lambda: None, lambda: (scene.brings(1), scene.ends(1))]
    assert scene.collect() == ["of-1", "of-2"]


def test_other_nodes_have_a_lease_after_one_has_failed() -> None:
    scene = Scene()
    scene.ends(2, ERROR)
    scene.brings(2)
    scene.looks = [lambda: None, lambda: scene.brings(1)]
    assert scene.collect() == ["of-1", "of-2"]
    later = Scene()
    later.ends(2, ERROR)
    later.brings(2)
    with pytest.raises(NotWhole, match=r"nodes \[1\] have not saved their parts: node 2: as it did"):
        later.collect()
    assert later.now > 60
