"""A script that imports the library, under a real worker: metrics, checkpoints, stopping, reading back."""

from __future__ import annotations

from pathlib import Path

import hostler
import servers
from hostler.records.checkpoint import checkpoints
from hostler.records.run import control
from hostler.records.run.handoff import Handoff
from worker_world import World, until

SCRIPT = """
import argparse, os, random, time
from pathlib import Path
import hostler

class Walk:
    x = 0.0
    def state_dict(self): return {"x": self.x}
    def load_state_dict(self, state): self.x = state["x"]

parser = argparse.ArgumentParser()
parser.add_argument("--scale", type=float)
args = parser.parse_args()
random.seed(1)
walk = Walk()
with hostler.start(args, tags=["walk"], notes="of a walk", save_every="1 steps") as run:
    run.track(walk=walk)
    run.keep_best("x", "max")
    for epoch in run.epochs(3):
        for step in run.steps(10):
            walk.x += random.gauss(0, args.scale)
            run.log(x=walk.x)
            if os.environ.get("SLOW"):
                Path(os.environ["MARKS"], f"step-{epoch}-{step}").touch()
                time.sleep(0.05)
        run.log(epoch_end=walk.x)
    (run.output_dir / "result.txt").write_text(repr(walk.x))
    run.finish(x=walk.x)
"""


def test_library_script_under_a_worker_is_read_as_frames(world: World) -> None:
    servers.library("pandas")
    job = world.submit(SCRIPT, runs=[{"scale": 1.0}, {"scale": 2.0}], metric="x", goal="max")
    assert world.work() == 0, world.log(job)
    frame = hostler.frame(world.store.url)
    assert list(frame["state"]) == ["done", "done"] and list(frame["scale"]) == [1.0, 2.0]
    assert list(frame["tags"]) == ["walk", "walk"]
    curves = hostler.curves(world.store.url, metric="x")
    assert list(curves.columns) == ["run", "metric", "step", "value", "time"]
    for run, curve in curves.groupby("run"):
        row = frame[frame["run"] == run].iloc[0]
        assert list(curve["step"]) == list(range(30))
        assert row["x"] == curve["value"].iloc[-1] and row["x.best"] == curve["value"].max()
    end = world.state(job).end
    assert end is not None and end["notes"] == "of a walk" and end["result"] == {"x": frame["x"][0]}


def test_stopped_and_resumed_run_is_bit_exact(world: World) -> None:
    whole = world.submit(SCRIPT, name="whole", runs=[{"scale": 1.0}])
    assert world.work() == 0, world.log(whole)
    job = world.submit(SCRIPT, name="stopped", runs=[{"scale": 1.0}], env={"SLOW": "1"})
    with world.working():
        until(world.mark("step-1-3").exists)
        control.pause(world.store, world.key(job))
        until(lambda: world.state(job).state == "paused")
    assert "stops: a person paused it" in world.log(job)
    control.resume(world.store, world.key(job))
    assert world.work() == 0
    assert world.state(job).state == "done" and world.state(job).attempts == 2
    assert world.curve(job, "x") == world.curve(whole, "x")
    assert world.curve(job, "epoch_end") == world.curve(whole, "epoch_end")


def test_run_whose_process_is_killed_is_bit_exact(world: World) -> None:
    whole = world.submit(SCRIPT, name="whole", runs=[{"scale": 1.0}])
    assert world.work() == 0, world.log(whole)
    killer = SCRIPT.replace(
        "run.log(x=walk.x)",
        "run.log(x=walk.x)\n            mark = Path(os.environ['MARKS'], f'kill-{run.step}')\n"
        "            if run.step in (7, 15, 23) and not mark.exists():\n"
        "                mark.touch(); os.kill(os.getpid(), 9)",
    )
    job = world.submit(killer, name="killed", runs=[{"scale": 1.0}], env={"SLOW": "1"}, retries=5)
    assert world.work() == 0
    assert world.state(job).state == "done" and world.state(job).attempts == 4, world.log(job)
    assert world.curve(job, "x") == world.curve(whole, "x")


def test_the_best_one_goes_along_and_is_with_the_outputs(world: World, tmp_path: Path) -> None:
    job = world.submit(SCRIPT, runs=[{"scale": 1.0}])
    assert world.work() == 0, world.log(job)
    from hostler.records.checkpoint import outputs

    found = outputs.newest(world.store, job.run_id(0))
    assert found is not None
    names = [row["name"] for row in found[1]]
    assert "result.txt" in names and any(name.startswith("best/x/state") for name in names)


def test_finish_commits_a_last_checkpoint_marked_finished(world: World) -> None:
    job = world.submit(SCRIPT, runs=[{"scale": 1.0}])
    assert world.work() == 0, world.log(job)
    newest = world.committed(job)[0]
    assert checkpoints.read(world.store, job.run_id(0), newest).finished


def test_a_process_killed_after_finish_is_done(world: World) -> None:
    job = world.submit(SCRIPT + "\nos.kill(os.getpid(), 9)\n", runs=[{"scale": 1.0}])
    assert world.work() == 0
    assert world.state(job).state == "done" and world.state(job).attempts == 1


def test_two_ranks_under_one_worker_are_one_run(world: World) -> None:
    launcher = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "one.py"], env={**os.environ, "RANK": str(r), "WORLD_SIZE": "2"})
         for r in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""
    world.file(
        "one.py",
        "import hostler\n"
        "with hostler.start() as run:\n"
        "    for step in run.steps(50):\n"
        "        run.log({f'loss{run.rank}': step})\n",
    )
    job = world.submit(launcher)
    assert world.work() == 0
    assert world.state(job).state == "done", world.log(job)
    for name in ("loss0", "loss1"):
        assert sorted(world.curve(job, name)) == [(n, float(n)) for n in range(50)]


def test_handoff_folder_has_the_files_that_the_docs_name(tmp_path: Path) -> None:
    folder = Handoff(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "internals.md").read_text()
    for path in (folder.params, folder.stop, folder.joined, folder.finished, folder.metrics, folder.log):
        assert f"`{path.name}`" in text
