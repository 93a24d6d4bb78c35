"""A second model begins from the best of the first: walk 7's half of it, with real workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostler.errors import MissingError, UsageError
from hostler.fleet.init_from import begin_from
from hostler.records import layout
from hostler.records.body import decode
from hostler.records.run import upstream
from hostler.spec import spans
from hostler.spec.inputs import inputs_of
from hostler.spec.job import Job
from hostler.spec.project import default_project
from hostler.spec.rounds import Round
from hostler.spec.space import parse
from hostler.spec.states import DONE, FAILED, QUEUED
from worker_world import World, until

FIRST = """
import json, os, pathlib, sys
lr = float(sys.argv[2])
while os.path.exists(os.environ["MARKS"] + "/wait"):
    import time; time.sleep(0.01)
pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "model.pt").write_text(f"weights {lr}")
pathlib.Path(os.environ["HOSTLER_OUTPUT_DIR"], "report.txt").write_text(f"report {lr}")
print(json.dumps({"step": 1, "score": -abs(lr - 2)}))
"""
SECOND = """
import os, pathlib, sys
place = pathlib.Path(sys.argv[2])
found = place if place.is_file() else place / "model.pt"
mark = pathlib.Path(os.environ["MARKS"], "second-" + os.environ["HOSTLER_RUN"])
mark.write_text(f"{place.name} {found.read_text()}")
"""
INIT = """
import os, pathlib
text = pathlib.Path(os.environ["HOSTLER_DATA"], "init", "model.pt").read_text()
pathlib.Path(os.environ["MARKS"], "began").write_text(text)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def first(world: World) -> Job:
    runs = [{"lr": 1}, {"lr": 2}, {"lr": 3}]
    return world.submit(FIRST, name="first", runs=runs, metric="score", goal="max")


def second(world: World, *inputs: dict[str, str]) -> Job:
    space = parse({"init": list(inputs)})
    return world.submit(SECOND, name="second", rounds=(Round(space, spans.whole(space.count), PYTHON),))


PYTHON = World.submit.__kwdefaults__["command"]  # type: ignore[index]


def marks(world: World) -> list[str]:
    return sorted(path.read_text() for path in (world.root / "marks").glob("second-*"))


def test_parameter_can_be_a_sweeps_best_a_run_or_file(world: World) -> None:
    one = first(world)
    assert world.work() == 0
    job = second(
        world,
        {"best-of": "first"},
        {"run": "first/2"},
        {"best-of": "first", "file": "report.txt"},
        {"run": one.run_id(0), "file": "model.pt"},
    )
    assert world.work() == 0
    assert [world.state(job, n).state for n in range(4)] == [DONE] * 4
    assert marks(world) == [
        *("files weights 2.0", "files weights 3.0", "model.pt weights 1.0", "report.txt report 2.0")
    ]
    record = decode(world.store.get(layout.inputs(job.run_id(0))).data, "inputs")
    assert record["inputs"]["init"]["run"] == one.run_id(1)


def test_run_and_worker_wait_until_their_inputs_are_over(world: World) -> None:
    one = first(world)
    (world.root / "marks" / "wait").touch()
    job = second(world, {"best-of": "first"})
    with world.working(only=("second",)) as _:
        until(lambda: "second waits for first" in world.said)
        with world.working(only=("first",)):
            until(lambda: "running" in [world.state(one, n).state for n in range(3)])
            assert world.state(job).state == QUEUED
            (world.root / "marks" / "wait").unlink()
            until(lambda: world.state(job).ended, 60)
    assert world.state(job).state == DONE
    assert marks(world) == ["files weights 2.0"]


def test_what_was_taken_first_is_taken_again(world: World) -> None:
    one = first(world)
    world.work()
    job = second(world, {"best-of": "first"})
    wanted = [next(iter(inputs_of(job.params(0))))]
    assert upstream.pinned(world.store, "r", wanted)["init"]["run"] == one.run_id(1)
    world.store.delete(*[e.key for e in world.store.list(layout.checkpoints(one.run_id(1)))])
    assert upstream.pinned(world.store, "r", wanted)["init"]["run"] == one.run_id(1)


def test_input_is_fetched_once_for_all_runs_of_a_machine(world: World) -> None:
    first(world)
    world.work()
    space = parse({"init": {"best-of": "first"}, "n": [1, 2, 3]})
    job = world.submit(SECOND, name="second", rounds=(Round(space, spans.whole(3), PYTHON),))
    world.work()
    assert [world.state(job, n).state for n in range(3)] == [DONE] * 3
    assert len([p for p in (world.cache / "inputs").iterdir() if p.is_dir()]) == 1
    assert "".join(world.log(job, n) for n in range(3)).count("fetching the result of") == 1


def test_nothing_to_take_is_a_clear_failure(world: World) -> None:
    bad = world.submit("raise SystemExit(3)", name="bad", retries=0, metric="score")
    world.work()
    job = second(world, {"run": "bad"}, {"best-of": "bad"})
    world.work()
    assert [world.state(job, n).state for n in range(2)] == [FAILED] * 2
    assert "is bad, which is failed" in str(world.ended(job, 0)["failure"])
    assert "no finished run of bad has logged score" in str(world.ended(job, 1)["failure"])
    assert world.state(bad).state == FAILED


def test_what_is_not_there_is_said_before_anything_starts(world: World) -> None:
    first(world)
    with pytest.raises(MissingError, match=r"fist.*did you mean first"):
        upstream.check(world.store, _taking({"best-of": "fist"}))
    with pytest.raises(MissingError, match="first has runs 0 to 2, not 9"):
        upstream.check(world.store, _taking({"run": "first/9"}))
    world.submit("", name="plain")
    with pytest.raises(UsageError, match="the sweep has no metric"):
        upstream.check(world.store, _taking({"best-of": "plain"}))


def _taking(reference: dict[str, str]) -> Job:
    return Job(name="x", command=("true",), runs=({"init": reference},))


@pytest.mark.parametrize("word", ["first", "first/1"])
def test_init_from_a_run_or_sweeps_best_is_in_data(world: World, word: str) -> None:
    first(world)
    world.work()
    project = default_project(world.root / "project")
    job, _ = begin_from(word, Job(name="j", command=("true",)), project, world.store)
    began = world.submit(INIT, name="began", init=job.init)
    assert world.work() == 0
    assert world.state(began).state == DONE
    assert (world.root / "marks" / "began").read_text() == "weights 2.0"


def test_init_from_a_path_or_url_is_in_data(world: World) -> None:
    project = default_project(world.root / "project")
    job = Job(name="j", command=("true",))
    at_path, with_path = begin_from(str(world.root), job, project, world.store)
    assert with_path.data["init"].path == ".."
    assert at_path.init == {"path": ".."}
    _, with_url = begin_from("gs://b/model.pt", job, project, world.store)
    assert with_url.data["init"].url == "gs://b/model.pt"
    with pytest.raises(UsageError, match="the data name 'init'"):
        begin_from("gs://b/x", job, with_url, world.store)


def test_reference_is_a_value_of_the_space_or_refused() -> None:
    space = parse({"init": [{"best-of": "a"}, {"run": "b/1", "file": "x.pt"}], "n": {"m": {"run": "c"}}})
    assert space.params(1) == {"init": {"run": "b/1", "file": "x.pt"}, "n": {"m": {"run": "c"}}}
    assert json.loads(json.dumps(space.source))["parameters"]["init"][0] == {"best-of": "a"}
    with pytest.raises(UsageError, match="not a reference to a run"):
        parse({"init": {"best-of": "a", "fiel": "x"}})
