"""Pure decisions of gangs: when one goes, what its processes are told, what ended it, who is missing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hostler import env
from hostler.attempt.saver import NotWhole
from hostler.errors import UsageError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run.gang import GangMember, GangNode, GangStart, GangView
from hostler.settings import Timing
from hostler.store import open_store
from hostler.worker.gang import launchers, missing, ranks
from hostler.worker.gang.checkpoint import Collector
from hostler.worker.gang.first_failure import cause
from hostler.worker.gang.rendezvous import GIVE_UP, GO, WAIT, GatheringView, decide, patience
from hostler.worker.run.failure import Verdict
from hostler.worker.run.kinds import DONE, ERROR, KILLED, NOT_FINISHED, RANK_LOST


def go(nodes: int, ports: int = 1) -> GangStart:
    made = [
        GangNode(n, f"s{n}", f"h{n}", f"10.0.0.{n}", tuple(5000 + 10 * n + p for p in range(ports)))
        for n in range(nodes)
    ]
    return GangStart(tuple(made), 6000, "secret")


@pytest.mark.parametrize(
    ("view", "what"),
    [
        (GatheringView(4, 4, joined=4, ready=4, since=0, calm=0), GO),
        (GatheringView(4, 4, joined=3, ready=3, since=99, calm=50), WAIT),
        (GatheringView(4, 4, joined=4, ready=3, since=999, calm=0), WAIT),  # it prepares, and beats
        (GatheringView(4, 4, joined=3, ready=3, since=100, calm=50), GIVE_UP),
        (GatheringView(4, 2, joined=3, ready=3, since=20, calm=5), WAIT),
        (GatheringView(4, 2, joined=3, ready=3, since=20, calm=10), GO),
        (GatheringView(4, 2, joined=3, ready=2, since=999, calm=99), WAIT),
        (GatheringView(4, 2, joined=1, ready=1, since=100, calm=99), GIVE_UP),
    ],
)
def test_gang_starts_when_it_is_full_or_enough_have_come(view: GatheringView, what: str) -> None:
    assert decide(view, gather=100, lease=10) == what


def test_leaving_node_waits_for_others_at_most_half_its_time() -> None:
    timing = Timing(grace=20.0, lease=300.0)
    assert patience(DONE, timing, going=False) > patience(NOT_FINISHED, timing, going=False) == 40.0
    assert patience(ERROR, timing, going=False) == 375.0
    assert {patience(kind, timing, going=True) for kind in (DONE, NOT_FINISHED, ERROR)} == {10.0}


def test_ranks_count_through_the_nodes_in_numeric_order() -> None:
    told = [one for node in range(12) for one in ranks.variables("torch", go(12), node, 2)]
    assert [int(one["RANK"]) for one in told] == list(range(24))
    assert {one["WORLD_SIZE"] for one in told} == {"24"}
    assert {(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in told} == {("10.0.0.0", "5000")}
    assert [one["LOCAL_RANK"] for one in told[:4]] == ["0", "1", "0", "1"]
    assert told[23]["GROUP_RANK"] == told[23]["NODE_RANK"] == "11"


def test_tensorflow_gets_every_process_and_jax_its_coordinator() -> None:
    config = json.loads(ranks.variables("tensorflow", go(2, 2), 1, 2)[1]["TF_CONFIG"])
    assert config["cluster"]["worker"] == ["10.0.0.0:5000", "10.0.0.0:5001", "10.0.0.1:5010", "10.0.0.1:5011"]
    assert config["task"] == {"type": "worker", "index": 3}
    jax = ranks.variables("jax", go(2), 1, 1)[0]
    assert jax["JAX_COORDINATOR_ADDRESS"] == "10.0.0.0:5000"
    assert (jax["JAX_NUM_PROCESSES"], jax["JAX_PROCESS_ID"]) == ("2", "1")
    assert "TF_CONFIG" not in jax


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        (["torchrun", "train.py"], True),
        (["/opt/env/bin/torchrun", "train.py"], True),
        (["python", "-m", "torch.distributed.run", "train.py"], True),
        (["bash", "-c", "source env.sh && torchrun train.py --lr $LR"], True),
        (["sh", "-ec", "cd x; A=1 exec python -m torch.distributed.run train.py"], True),
        (["bash", "-c", "python train.py --launcher torchrun"], False),
        (["python", "torchrun_later.py"], False),
        (["python", "train.py", "-m", "x"], False),
        (["accelerate", "launch", "train.py"], True),
        (["python", "-m", "accelerate.commands.launch", "train.py", "--cpu"], True),
        (["accelerate", "launch", "--use-cpu", "train.py"], False),
        (["accelerate", "config"], False),
    ],
)
def test_command_that_starts_processes_itself_is_known(command: list[str], is_one: bool) -> None:
    assert launchers.is_launcher(command) == is_one
    told = launchers.variables(go(3), 2, 4)
    assert (told["PET_NNODES"], told["PET_NODE_RANK"], told["PET_NPROC_PER_NODE"]) == ("3", "2", "4")


def test_accelerate_launch_is_told_of_the_gang_by_options() -> None:
    whole = "--num_machines 3 --machine_rank 2 --num_processes 12"
    whole += " --main_process_ip 10.0.0.0 --main_process_port 5000"
    given = ("accelerate", "launch", "--num_processes=3", "train.py", "--tpu")
    told = launchers.command(given, go(3), 2, 4)
    assert " ".join(told[2:]) == f"{whole} --multi_gpu --same_network --num_processes=3 train.py --tpu"
    sharded = launchers.command(["accelerate-launch", "--use-fsdp", "train.py"], go(3), 2, 4)
    assert "--multi_gpu" not in sharded and sharded[-2:] == ("--use-fsdp", "train.py")
    assert launchers.command(["torchrun", "train.py"], go(3), 2, 4) == ("torchrun", "train.py")


def test_killed_rank_and_not_its_observer_ended_the_gang() -> None:
    echo = Verdict(ERROR, "RuntimeError: Connection closed by peer")
    dead = {"kind": KILLED, "message": "killed by SIGKILL"}
    assert cause(echo, {1: dead, 2: vars(echo)}, {}).message == "node 1: killed by SIGKILL"
    own = Verdict(ERROR, "ValueError: bad lr")
    assert cause(own, {1: vars(echo)}, {}) == own
    assert cause(echo, {2: {"kind": ERROR, "message": "ValueError: bad lr"}}, {}).message.startswith("node 2")
    assert cause(echo, {}, {3: "h3"}).kind == RANK_LOST
    assert cause(Verdict(DONE, ""), {1: {"kind": DONE}}, {}).kind == DONE
    assert cause(Verdict(NOT_FINISHED, "stopped"), {1: dead}, {}).kind == NOT_FINISHED


def test_members_error_keeps_its_type_and_place() -> None:
    end = vars(Verdict(ERROR, "TypeError: no", "T", "s", "TypeError", "train.py:7"))
    expected = Verdict(ERROR, "node 1: TypeError: no", "T", "s", "TypeError", "train.py:7")
    assert cause(Verdict(DONE, ""), {1: end}, {}) == expected


def test_who_is_missing_is_named_with_the_reason() -> None:
    came = {
        0: GangMember(0, {"session": "s0", "host": "a"}),
        1: GangMember(1, {"session": "s1", "host": "b"}),
    }
    gone = GangMember(2, {"session": "s2", "host": "c"}, leaves={"reason": "preempted"})
    beats = {
        "s0": {"host": "a"},
        "s1": {"host": "b"},
        "s3": {"host": "d", "runs": {"0000001-other-abc": {}}},
        "s4": {"host": "e", "unfit": ["asks for 2 GPUs, this machine offers 0"]},
    }
    said = missing.why_not(GangView({**came, 2: gone}), beats, "s0", "job", 4, 600)
    assert said.startswith("1 of 4 workers joined within 600 s: ")
    for part in (
        "b joined and is not ready yet",
        "c joined and had to leave: it is preempted",
        "d is busy with 0000001-other-abc",
        "e does not fit: asks for 2 GPUs",
    ):
        assert part in said


def test_whole_gang_misses_no_other_worker() -> None:
    joined = {n: GangMember(n, {"session": f"s{n}", "host": f"h{n}"}) for n in (1, 2)}
    beats = {f"s{n}": {"host": f"h{n}"} for n in range(3)}
    said = missing.who(GangView(joined), beats, "s0", "job", 3)
    assert said == "h1 joined and is not ready yet; h2 joined and is not ready yet"
    ready = {n: replace(member, ready={"reaches": ["10.0.0.1"]}) for n, member in joined.items()}
    assert missing.who(GangView(ready), beats, "s0", "job", 3) == "all are ready, and begin"
    assert "no other worker is alive" in missing.who(GangView(joined), beats, "s0", "job", 4)


def test_who_is_busy_and_fits_will_come() -> None:
    came = {
        0: GangMember(0, {"session": "s0", "host": "a"}),
        1: GangMember(1, {"session": "s1", "host": "b"}),
    }
    beats = {
        "s0": {"host": "a", "runs": {"0-job": {}}},
        "s1": {"host": "b", "runs": {"0-job": {}}},
        "s2": {"host": "c", "runs": {"1-job": {}}},
        "s3": {"host": "d", "runs": {"2-job": {}}, "only": ["another"]},
        "s4": {"host": "e", "runs": {"3-job": {}}, "unfit": ["asks for 2 GPUs, this machine offers 0"]},
        "s5": {"host": "f"},
    }
    assert missing.busy(GangView(came), beats, "s0", "job") == 1


def test_who_cannot_reach_the_leader_is_named() -> None:
    deaf = GangMember(1, {"session": "s1", "host": "b"}, ready={"reaches": {}, "ports": [1]})
    said = missing.unreached(GangView({1: deaf}), ["10.0.0.1"], 5000)
    assert said.startswith("b cannot reach 10.0.0.1 at port 5000")


def test_ports_that_may_be_used_are_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_PORTS", "20000-20100")
    assert env.ports() == (20000, 20100)
    assert env.ports_given() == {"HOSTLER_PORTS": "20000-20100"}
    monkeypatch.setenv("HOSTLER_PORTS", "20000")
    assert env.ports() == (20000, 20000)
    monkeypatch.setenv("HOSTLER_PORTS", "many")
    with pytest.raises(UsageError, match="is not a range of ports"):
        env.ports()
    monkeypatch.delenv("HOSTLER_PORTS")
    assert env.ports() is None and env.ports_given() == {}


def test_a_part_that_never_comes_is_not_waited_for() -> None:
    store = open_store("memory:")
    nothing: list[float] = []
    collector = Collector(store, "run", 3, 2, 1, lambda nodes: None, clock=lambda: 0.0, pause=nothing.append)
    key = layout.checkpoint_part("run", 3, 21, 1)
    store.put(key, encode({"files": [{"name": "a"}], "writer": 1, "position": 5}))
    assert collector.collect(Place(3, 21)) == ([{"name": "a"}], {"1": 5})
    with pytest.raises(NotWhole, match=r"nodes \[1\] went on without saving their parts of 3-11"):
        collector.collect(Place(3, 11))


def test_part_that_comes_with_a_later_one_is_taken() -> None:
    store = open_store("memory:")

    def bring(step: int) -> None:
        row = {"name": f"of-{step}"}
        store.put(
            layout.checkpoint_part("run", 3, step, 1), encode({"files": [row], "writer": 1, "position": 0})
        )

    def both(missing: set[int]) -> None:
        bring(11)
        bring(21)

    collector = Collector(store, "run", 3, 2, 1, both, clock=lambda: 0.0, pause=lambda seconds: None)
    assert collector.collect(Place(3, 11))[0] == [{"name": "of-11"}]


def test_parts_are_waited_for_within_a_bound_and_nodes_named() -> None:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += 100

    collector = Collector(
        open_store("memory:"), "run", 3, 3, 1, lambda nodes: None, clock=lambda: now[0], pause=pause
    )
    with pytest.raises(NotWhole, match=r"nodes \[1, 2\] have not saved their parts of 3-11 within 600 s"):
        collector.collect(Place(3, 11))
