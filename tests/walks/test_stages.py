"""Three stages: the first is stopped by hand, the second begins at its best, the third at a step of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.fleet.init_from import begin_from
from hostler.records import project as projects
from hostler.records.checkpoint import selection
from hostler.records.run import control, upstream
from hostler.spec import spans
from hostler.spec.job import Checkpointing, Job
from hostler.spec.project import default_project
from hostler.spec.rounds import Round
from hostler.spec.space import parse
from hostler.spec.states import DONE, QUEUED, STOPPED
from hostler.store import open_store
from worker_world import World, until

# Adds its rates to a weight that it finds where it is told to begin; each epoch waits until the test has seen
# the checkpoint of the one before.
TRAIN = """
import glob, json, os, pathlib, sys, time, hostler
rates = [float(word) for word in os.environ["RATES"].split()]
begin = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.environ["HOSTLER_DATA"], "init")

class Model:
    weight = 0.0
    def state_dict(self): return {"weight": self.weight}
    def load_state_dict(self, state): self.weight = state["weight"]

model = Model()
for path in sorted(glob.glob(f"{begin}/step-*/state-0000.json"))[-1:]:
    model.weight = json.loads(pathlib.Path(path).read_text())["objects"]["model"]["weight"]
name = os.environ["HOSTLER_RUN"][8:-7]
pathlib.Path(os.environ["MARKS"], f"{name}-began").write_text(str(model.weight))
with hostler.start() as run:
    run.track(model=model)
    if "KEEPS" in os.environ:
        run.keep_best("acc")
    for epoch, rate in zip(run.epochs(len(rates)), rates):
        while not os.path.exists(f"{os.environ['MARKS']}/{name}-{epoch}") and not run.should_stop:
            time.sleep(0.02)
        model.weight += rate
        run.log(acc=model.weight)
        run.save(wait=True)
"""
KEEP = Checkpointing(every=0.1, keep=50)


@pytest.fixture(params=["folder", "bucket"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    made = World(tmp_path)
    if request.param == "bucket":
        made.store = open_store(request.getfixturevalue("seaweed_store_url"))
        projects.ensure(made.store, "test", made.timing)
    return made


def steps(world: World, job: Job) -> set[int]:
    return {one.step for one in selection.kept(world.store, job.run_id(0), None)}


def go_on(world: World, job: Job, epochs: int) -> None:
    """Let it train so many epochs, each of which leaves a checkpoint in the store."""
    for epoch in range(epochs):
        world.mark(f"{job.name}-{epoch}").touch()
        until(lambda wanted=epoch + 1: wanted in steps(world, job))


def began(world: World, job: Job) -> float:
    return float(world.mark(f"{job.name}-began").read_text())


@pytest.mark.parametrize("keeps", [True, False], ids=["keep_best", "checkpoints"])
def test_stages_begin_at_the_best_and_at_a_step(world: World, keeps: bool) -> None:
    rates = {"RATES": "0.25 0.5 -0.5 0 0 0", **({"KEEPS": "1"} if keeps else {})}
    one = world.submit(TRAIN, name="one", metric="acc", goal="max", checkpoint=KEEP, env=rates)
    space = parse({"init": {"run": "one@best"}})
    two = world.submit(
        TRAIN,
        name="two",
        metric="acc",
        checkpoint=KEEP,
        env={"RATES": "1 1 1"},
        rounds=(Round(space, spans.whole(1), one.command),),
    )
    with world.working(only=("one",)):
        go_on(world, one, 4)
        assert upstream.waiting_for(world.store, two) == "one@best"
        assert world.state(two).state == QUEUED
        assert control.stop(world.store, world.key(one), by="hostler stop") == "asked to save and stop"
        until(lambda: world.state(one).ended)
    assert world.state(one).state == STOPPED
    best = selection.choose(world.store, world.key(one), "best")
    assert (best.value, bool(best.folder)) == (0.75, keeps)

    with world.working(only=("two",)):
        until(lambda: world.mark("two-began").exists())
        go_on(world, two, 3)
        until(lambda: world.state(two).ended)
    assert world.state(two).state == DONE and began(world, two) == 0.75

    job, _ = begin_from("two@2", two, default_project(world.root / "project"), world.store)
    three = world.submit(TRAIN, name="three", init=job.init, env={"RATES": "1"})
    world.mark("three-0").touch()
    assert world.work(only=("three",)) == 0
    assert world.state(three).state == DONE and began(world, three) == 2.75
