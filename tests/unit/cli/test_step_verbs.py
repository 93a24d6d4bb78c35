"""`pull`, `show`, `tag`, `best` and `archive` over checkpoints of a step and over stopped runs."""

from __future__ import annotations

import json
import time

import pytest

from acting_world import World, world
from hostler.records import layout

__all__ = ["world"]

# Saves after each of its values, each time until the store has it; a third word has it go on after them.
LIBRARY = """
import json, os, pathlib, sys, time, hostler
values = json.loads(sys.argv[1])
saved = pathlib.Path(PLACE, "runs", os.environ["HOSTLER_RUN"], "checkpoints")

class Model:
    weight = None
    def state_dict(self): return {"weight": self.weight}
    def load_state_dict(self, state): self.weight = state["weight"]

model = Model()
with hostler.start(save_every="epoch") as run:
    run.track(model=model)
    for epoch in run.epochs(len(values) + 1000 * (len(sys.argv) > 2)):
        while len(list(saved.glob("*/COMMIT"))) < min(epoch, 3):
            time.sleep(0.02)
        if epoch < len(values):
            model.weight = values[epoch]
            run.log(acc=model.weight)
            run.save(wait=True)
        else:
            time.sleep(0.05)
"""
YAML = """
name: p
metric: acc
goal: max
checkpoint: {every: 1s, keep: 50}
"""


@pytest.fixture
def trained(world: World) -> World:
    world.write("hostler.yaml", YAML)
    world.write("train.py", LIBRARY.replace("PLACE", repr(str(world.folder / ".hostler"))))
    world.ok("run", "--name", "a", "train.py", "[0.5, 0.9, 0.7]")
    return world


def steps(world: World, name: str = "a") -> dict[int, float]:
    found = json.loads(world.ok("show", name, "--json"))["checkpoints"]
    return {one["step"]: one["value"] for one in found}


def weight(world: World, folder: str) -> float:
    [*_, path] = sorted((world.folder / folder / "checkpoint").glob("step-*/state-0000.json"))
    return float(json.loads(path.read_text())["objects"]["model"]["weight"])


def test_pull_brings_the_checkpoint_of_a_step(trained: World) -> None:
    assert steps(trained) == {1: 0.5, 2: 0.9, 3: 0.7}
    trained.ok("pull", "a", "--step", "1")
    trained.ok("pull", "a@3")
    trained.ok("pull", "a@best", "--to", "here")
    trained.ok("pull", "a", "--step", "last", "--to", "newest")
    assert [weight(trained, one) for one in ("a@1", "a@3", "here", "newest")] == [0.5, 0.7, 0.9, 0.7]
    told = json.loads(trained.ok("pull", "a@2", "--to", "two", "--json"))
    assert told["parts"] == ["checkpoint"] and told["step"] == 2


BAD = {
    "a@15": "a: step 15 is not kept; kept steps: 1, 2, 3",
    "a --step x": "--step x: not a step of a run",
    "a@x": "a@x: 'x' is not a step of a run",
    "a@1 --step 2": "--step 2 and a@1 cannot be combined",
}


def test_pull_of_a_bad_step_is_one_line(trained: World) -> None:
    for words, line in BAD.items():
        refused = trained.cli("pull", *words.split())
        assert refused.returncode and refused.stderr.splitlines()[0] == f"hostler: {line}"
        assert "Traceback" not in refused.stderr


def test_run_from_a_step_that_is_not_kept_is_refused(trained: World) -> None:
    for words in (("run", "--detach", "train.py", "[1]"), ("sweep", "-y", "s.yaml")):
        trained.write("s.yaml", "command: python train.py\nparameters: {lr: [1]}\n")
        refused = trained.cli(words[0], "--init-from", "a@15", *words[1:])
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[0] == "hostler: a: step 15 is not kept; kept steps: 1, 2, 3"
        assert refused.stderr.splitlines()[1].strip() == "→ use a@3"
    assert [row["name"] for row in trained.rows()] == ["a"]


def test_plan_shows_an_input_as_the_option_it_becomes(trained: World) -> None:
    trained.write("next.py", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--init')\n")
    text = "command: python next.py\nparameters: {init: [{run: a, step: 2}, {run: a@best}]}\n"
    trained.write("next.yaml", text)
    shown = trained.ok("plan", "next.yaml")
    assert "run 0: python next.py --init '<a@2>'" in shown
    assert "not among the script's options" not in shown


def test_pull_brings_the_weights_that_the_run_is_ranked_by(trained: World) -> None:
    trained.ok("pull", "a", "--to", "last")
    assert weight(trained, "last") == 0.7
    [asked] = json.loads(trained.ok("best", "a", "--of", "best", "--json"))
    assert asked["pull"] == ["hostler", "pull", "a@2"] and asked["weights"]["kept"]
    [own] = json.loads(trained.ok("best", "a", "--json"))
    assert own["pull"] == ["hostler", "pull", "a"]
    trained.write("hostler.yaml", YAML.replace("metric: acc", "metric: {name: acc, of: best}"))
    trained.ok("run", "--name", "b", "train.py", "[0.5, 0.9, 0.7]")
    brought = trained.cli("pull", "b", "--to", "best")
    assert brought.returncode == 0 and weight(trained, "best") == 0.9
    assert "has the weights of acc=0.9 (best, step " in brought.stderr


def test_show_lists_step_metric_size_and_age(trained: World) -> None:
    lines = trained.ok("show", "a").splitlines()
    at = lines.index("checkpoints")
    assert lines[at + 1].split() == ["step", "acc", "files", "size", "age"]
    found = [line.split() for line in lines[at + 2 : lines.index("environment")]]
    assert {(row[1], row[2]) for row in found} == {("3", "0.7"), ("2", "0.9"), ("1", "0.5")}
    assert found[0][-1] == "finished" and all(row[4].endswith("B") and row[5].endswith("s") for row in found)


def test_tag_keeps_a_checkpoint_and_lets_it_go(trained: World) -> None:
    assert "step 1: stays" in trained.ok("tag", "a@1", "keep")
    run = trained.rows("a")[0]["id"]
    [sign] = [
        entry.key for entry in trained.store.list(layout.checkpoints(run)) if entry.key.endswith("KEEP")
    ]
    found = json.loads(trained.ok("show", "a", "--json"))["checkpoints"]
    assert {one["step"]: one["kept"] for one in found} == {3: False, 2: False, 1: True}
    assert "step 1: stays" in trained.ok("tag", "a@1")
    assert "may be removed" in trained.ok("tag", "a@1", "-keep")
    assert sign not in [entry.key for entry in trained.store.list(layout.checkpoints(run))]
    assert "may be removed" in trained.ok("tag", "a@1")


def test_tag_of_a_bad_checkpoint_is_refused(trained: World) -> None:
    refused = trained.cli("tag", "a@7", "keep")
    line = "a: step 7 is not kept; kept steps: 1, 2, 3 (use a@3)"
    assert refused.returncode == 1 and line in (refused.stdout + refused.stderr).splitlines()
    refused = trained.cli("tag", "a@1", "good")
    assert refused.returncode == 2 and "'good' is not a mark of a checkpoint" in refused.stderr
    refused = trained.cli("tag", "a", "a@1", "+keep")
    assert refused.returncode == 2 and "a names no checkpoint" in refused.stderr


def stop_at(world: World, name: str, step: int) -> None:
    until = time.monotonic() + 60
    while step not in steps(world, name):
        assert time.monotonic() < until
    world.ok("stop", name)
    world.cli("wait", name)


def test_stopped_run_counts_in_best_and_archive(trained: World) -> None:
    trained.ok("run", "--name", "b", "--detach", "train.py", "[0.95, 0.99, 0.98]", "long")
    stop_at(trained, "b", 3)
    told = trained.ok("best", "b")
    assert told.splitlines()[0].endswith("  stopped")
    assert json.loads(trained.ok("best", "b", "--json"))[0]["state"] == "stopped"
    refused = trained.cli("best", "b", "--only", "done")
    assert refused.returncode == 1 and "no run of b has succeeded (1 stopped)" in refused.stderr
    listed = trained.ok("archive", "--top", "5").splitlines()
    assert len(listed) == 2 and sum("  stopped  " in line for line in listed) == 1
    only = json.loads(trained.ok("archive", "--only", "done", "-y", "--json"))
    assert [one["state"] for one in only] == ["done"]
    assert len(json.loads(trained.ok("archive", "--json"))) == 1  # it holds until it is lifted
    assert len(json.loads(trained.ok("archive", "--only", "any", "--json"))) == 2
