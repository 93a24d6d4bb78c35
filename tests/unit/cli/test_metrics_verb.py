"""`hostler metrics`: metrics from the stored output of runs that are over, and what leads people to it."""

from __future__ import annotations

import json
import re

import pytest

from acting_world import World, wait_for, world
from hostler.analysis.board.live import LiveStore
from hostler.analysis.curves import curves
from hostler.analysis.frame import frame
from hostler.records.run import resolve

__all__ = ["world"]

SCRIPT = """
import sys
lr = float(sys.argv[2])
print("begins")
for n in range(3):
    print(f"pass {n} has dice {lr + n}")
    print(f"epoch {n} | val_loss={lr / (n + 1):.4f}")
"""
SWEEP = """
name: grid
command: python train.py
metrics: none
{more}
parameters:
  lr: [0.5, 0.25]
"""
DICE = r"pass (?P<step>\d+) has dice (?P<dice>[\d.]+)"


def swept(world: World, script: str = SCRIPT, more: str = "") -> None:
    world.write("train.py", script)
    world.write("grid.yaml", SWEEP.format(more=more))
    world.ok("sweep", "-y", "grid.yaml")
    world.ok("wait", "grid")


def found(world: World, *words: str) -> list[dict[str, object]]:
    return json.loads(world.ok("metrics", "grid", "--json", *words))


def test_pattern_reads_done_runs_again_as_points_like_any_other(world: World) -> None:
    swept(world)
    live, url = LiveStore(world.store, lambda: 0.0), str(world.folder / ".hostler")
    live.look()
    assert "dice" not in frame(url, "grid").columns
    said = world.ok("metrics", "grid", "--pattern", DICE)
    assert said.strip() == "6 points in 2 runs of dice"
    assert [row["metrics"]["dice"] for row in world.rows("grid")] == [2.5, 2.25]
    made = curves(url, "grid", metric="dice")
    assert list(zip(made["step"], made["value"], strict=True)) == [
        *((n, 0.5 + n) for n in range(3)),
        *((n, 0.25 + n) for n in range(3)),
    ]
    assert list(frame(url, "grid")["dice.best"]) == [2.5, 2.25]
    assert world.ok("best", "grid", "--metric", "dice").startswith("grid/0  dice=2.5")
    live.forget_calm()
    live.look()
    assert [row.metrics["dice"] for row in live.sweeps["grid"].rows.values()] == [2.5, 2.25]
    shown = json.loads(world.ok("show", "grid/0", "--json"))
    extremes = {"min": 0.5, "min_step": 0, "max": 2.5, "max_step": 2}
    assert shown["totals"]["dice"] == {"last": 2.5, "step": 2.0, **extremes}
    assert len(shown["attempts"]) == 1 and shown["state"] == "done"


def test_reading_again_without_a_pattern_uses_the_recognisers(world: World) -> None:
    swept(world)
    assert world.ok("metrics", "grid").strip() == "6 points in 2 runs of val_loss"
    assert world.rows("grid")[0]["metrics"]["val_loss"] == pytest.approx(0.1667)


def test_reading_twice_changes_nothing_and_says_so(world: World) -> None:
    swept(world)
    first = found(world, "--pattern", DICE)
    before = {entry.key: entry.etag for entry in world.store.list("")}
    again = found(world, "--pattern", DICE)
    assert {entry.key: entry.etag for entry in world.store.list("")} == before
    assert [one["changed"] for one in first] == [True, True]
    assert [one["changed"] for one in again] == [False, False]
    assert "6 points in 2 runs were there already" in world.ok("metrics", "grid", "--pattern", DICE)
    world.ok("metrics", "grid")  # what another reading finds is added
    assert set(world.rows("grid/0")[0]["metrics"]) == {"dice", "val_loss"}


def test_metrics_of_the_runs_own_stay_as_they_are(world: World) -> None:
    script = 'print(\'{"loss": 1.5}\')\nprint("epoch 3 | loss=9.0 | acc=0.5")'
    world.write("train.py", script)
    world.write("grid.yaml", SWEEP.format(more="").replace("metrics: none\n", ""))
    world.ok("sweep", "-y", "grid.yaml")
    world.ok("wait", "grid")
    pattern = r"loss=(?P<loss>[\d.]+) \| acc=(?P<acc>[\d.]+)"
    said = world.ok("metrics", "grid", "--pattern", pattern)
    assert "2 points in 2 runs of acc" in said and "loss: logged by the runs themselves" in said
    assert world.rows("grid")[0]["metrics"] == {"loss": 1.5, "acc": 0.5}


def refused(world: World, *words: str) -> tuple[int, str]:
    done = world.cli(*words)
    assert "Traceback" not in done.stderr and done.returncode in (1, 2)
    return done.returncode, done.stderr


def test_bad_patterns_and_names_are_one_line_each(world: World) -> None:
    swept(world, "pass")
    code, said = refused(world, "metrics", "grid", "--pattern", r"loss=[\d.]+")
    assert code == 2 and "has no group named like a metric" in said and "(?P<loss>" in said
    code, said = refused(world, "metrics", "grid", "--pattern", "(?P<loss>[0-9")
    assert code == 2 and "is not a regular expression" in said and "→ put it in quotes" in said
    code, said = refused(world, "metrics", "grid", "--pattern", r"(?P<step>\d+)")
    assert code == 2 and "has no group named like a metric" in said
    code, said = refused(world, "metrics", "grdi")
    assert code == 1 and "did you mean grid?" in said


def test_runs_without_stored_output_say_so(world: World) -> None:
    swept(world, "pass")
    for key in resolve.runs(world.store, "grid"):
        world.store.delete(*[entry.key for entry in world.store.list(f"runs/{key.run}/logs/")])
    code, said = refused(world, "metrics", "grid")
    assert code == 1 and "the runs of grid have no stored output to read" in said


def test_pattern_that_matches_nothing_shows_a_sample_of_lines(world: World) -> None:
    swept(world)
    code, said = refused(world, "metrics", "grid", "--pattern", "dise (?P<dice>[0-9.]+)")
    assert code == 1 and "matches no line of grid" in said
    assert "lines of grid/0:" in said and "  pass 0 has dice 0.5" in said


def test_run_that_has_not_ended_is_not_read(world: World) -> None:
    world.write("train.py", "import time\nprint('loss: 0.5', flush=True)\ntime.sleep(600)")
    world.spawn("run", "--name", "long", "train.py")
    wait_for(lambda: "long" in world.sweeps() and world.state("long") == "running", "it to run")
    code, said = refused(world, "metrics", "long")
    assert code == 1 and "no run of long has ended yet" in said
    world.ok("stop", "long")


def test_best_without_a_metric_shows_the_line_to_add(world: World) -> None:
    swept(world)
    code, said = refused(world, "best", "grid")
    assert code == 2 and "grid has no metric to go by" in said
    assert "hostler metrics grid reads val_loss from the stored output" in said
    assert "add `metric: {name: val_loss, goal: min}` to grid.yaml" in said
    world.ok("metrics", "grid")
    code, said = refused(world, "best", "grid")
    assert "add `metric: {name: val_loss, goal: min}` to grid.yaml, or --metric val_loss" in said


def test_best_with_a_metric_nobody_logged_shows_candidates(world: World) -> None:
    swept(world, more="metric: val_loss\ngoal: min")
    code, said = refused(world, "best", "grid")
    assert code == 1 and "no finished run of grid has logged val_loss" in said
    assert "hostler metrics grid reads val_loss" in said
    world.ok("metrics", "grid")
    assert world.ok("best", "grid").startswith("grid/1  val_loss=0.0833")


def test_best_without_any_candidate_shows_how_to_name_one(world: World) -> None:
    swept(world, "print('nothing of note')")
    _, said = refused(world, "best", "grid")
    assert "→ print a line like loss=0.5 in the script" in said and "--pattern" not in said


def test_usage_error_is_not_proposed_as_a_metric(world: World) -> None:
    text = (
        "import sys\nprint('usage: train.py\\ntrain.py: error: unrecognized arguments: 0.99')\nsys.exit(2)\n"
    )
    world.write("train.py", text)
    world.write("grid.yaml", SWEEP.format(more=""))
    world.ok("sweep", "-y", "grid.yaml")
    assert world.cli("wait", "grid").returncode == 1
    _, said = refused(world, "best", "grid")
    assert "grid" in said and "--pattern" not in said


WORDS = "print('took 3 tries')\nfor n in range(3):\n    print(f'pass {n} has dice {n + 0.5}.')"


@pytest.mark.parametrize("verb", ["best", "metrics"])
def test_proposed_pattern_reads_the_metric_from_the_log(world: World, verb: str) -> None:
    swept(world, WORDS)
    _, said = refused(world, verb, "grid")
    pattern = re.search(r"hostler metrics grid --pattern '([^']+)'", said)
    assert pattern, said
    assert world.ok("metrics", "grid", "--pattern", pattern[1]).strip() == "6 points in 2 runs of dice"
    assert world.ok("best", "grid", "--metric", "dice").startswith("grid/0  dice=2.5")


def test_report_without_a_metric_shows_the_line_to_add(world: World) -> None:
    swept(world)
    done = world.cli("report", "grid")
    assert done.returncode == 0
    line = "add `metric: {name: val_loss, goal: min}` to grid.yaml"
    assert line in done.stderr and line in (world.folder / "grid.html").read_text()
    world.write("named.yaml", SWEEP.format(more="metric: val_loss").replace("grid", "named"))
    world.ok("sweep", "-y", "named.yaml")
    world.ok("wait", "named")
    assert "names no metric" not in world.cli("report", "named").stderr
