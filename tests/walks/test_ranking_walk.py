"""Runs whose best value is not their last: every reader ranks the same run, by the same value and step."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hostler
from cli_world import World
from hostler.analysis.board import shape
from hostler.analysis.board.live import LiveStore
from hostler.analysis.plots import source as plots
from hostler.records.run import upstream
from hostler.records.sweep import sweeps
from hostler.records.sweep.ends import EndReader
from hostler.search import telling
from hostler.store import open_store

TRAIN = """
import os, time, hostler
from hostler.records.checkpoint import checkpoints
from hostler.store import open_store

class Weights:
    value = 0.0
    def state_dict(self):
        return {"value": self.value}
    def load_state_dict(self, state):
        self.value = state["value"]

run = hostler.start()
weights = Weights()
run.track(weights=weights)
store = open_store(os.environ["STORE"])
if os.environ["KEEPS"] == "best":
    run.keep_best("acc", "maximize")
for epoch in run.epochs(3):
    while len(checkpoints.committed(store, os.environ["HOSTLER_RUN"])) < epoch:
        time.sleep(0.02)
    weights.value = {"peak": [0.2, 0.95, 0.1], "rise": [0.3, 0.6, 0.7], "nan": [0.4, 0.5, float("nan")]}[
        run.params.shape
    ][epoch]
    run.log(acc=weights.value, step=epoch)
    run.save(wait=True)
run.finish()
"""
FILE = """
name: NAME
command: python train.py
metric: {name: acc, goal: maximize, of: RULE}
parameters:
  shape: [peak, rise, nan]
"""
LEARNS = """
name: NAME
command: python train.py
metric: {name: acc, goal: maximize, of: RULE}
method: tpe
parameters:
  shape: {values: [peak, rise]}
budget: {runs: 6}
"""
NEXT = """
name: next-NAME
command: python next.py
parameters:
  begin: [{best-of: NAME}]
"""
BEGIN = """
import argparse, glob, json
parser = argparse.ArgumentParser()
parser.add_argument("--begin")
states = sorted(glob.glob(parser.parse_args().begin + "/step-*/state-0000.json"))
print(json.dumps({"begins": json.load(open(states[-1]))["objects"]["weights"]["value"]}))
"""


STOPS_EARLY = """
import hostler
run = hostler.start()
early = hostler.EarlyStopping(patience=2, mode="max")
for epoch in run.epochs(50):
    value = min(epoch, 3) * run.params.lr
    run.log(acc=value)
    if early.stop(value):
        break
run.finish()
"""


class Ranked(NamedTuple):
    """A rule, and the run that is the best by it."""

    rule: str
    keeps: str  # `best`: the script keeps the best state; `all`: every checkpoint stays
    shape: str
    value: float
    step: int
    kind: str
    weights: float  # that one gets
    folder: str = ""  # of the checkpoint, where they are


RULES = [
    Ranked("kept", "best", "peak", 0.95, 1, "best", 0.95, "best/acc"),
    Ranked("kept", "all", "rise", 0.7, 2, "last", 0.7),
    Ranked("best", "all", "peak", 0.95, 1, "best", 0.95),
    Ranked("last", "best", "rise", 0.7, 2, "last", 0.7),
    Ranked("{mean: 2}", "best", "rise", 0.65, 2, "mean of 2", 0.7),
]
NAMES = [f"{one.rule.strip('{}').replace(': ', '-')}-keeps-{one.keeps}" for one in RULES]


def pairs(rules: list[Ranked], names: list[str]) -> list[Any]:
    """Each rule with a store, and each store with a rule; the other pairs are of the long dose."""
    found = []
    for (place, rule), kind in product(enumerate(rules), ("folder", "bucket")):
        now = (kind == "bucket") == bool(place % 2)
        marks = () if now else pytest.mark.soak
        found.append(pytest.param(kind, rule, id=f"{kind}-{names[place]}", marks=marks))
    return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    settle(world, str(world.store))
    yield world
    world.close()


@pytest.fixture
def stored(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A world whose store is a folder, or a bucket of a real server."""
    bucket = request.getfixturevalue("seaweed_store_url") if kind == "bucket" else ""
    world = World(tmp_path)
    settle(world, bucket or str(world.store))
    yield world
    world.close()


def settle(world: World, url: str, keeps: str = "best") -> None:
    world.env |= {"STORE": url}
    world.write("train.py", TRAIN)
    world.write("next.py", BEGIN)
    env = f"env: {{STORE: '{url}', KEEPS: {keeps}}}"
    world.write("hostler.yaml", f"store: {url}\n{env}\ncheckpoint: {{every: 0.1, keep: 10}}\n")


def sweep(world: World, text: str, name: str, rule: str) -> None:
    world.write(f"{name}.yaml", text.replace("NAME", name).replace("RULE", rule))
    answer = world.run("sweep", "-y", "--wait", f"{name}.yaml", timeout=180)
    assert answer.code == 0, answer.err


def weights_in(folder: Path) -> float:
    """The weights of the newest state of a folder that the library saved."""
    [*_, newest] = sorted(folder.glob("step-*/state-0000.json"))
    return float(json.loads(newest.read_text())["objects"]["weights"]["value"])


def told(found: dict[str, Any]) -> tuple[Any, ...]:
    return found["value"], found["step"], found["of"]


@pytest.mark.parametrize(("kind", "ranked"), pairs(RULES, NAMES))
def test_all_readers_agree_on_run_value_step_and_weights(stored: World, ranked: Ranked) -> None:
    settle(stored, stored.env["STORE"], ranked.keeps)
    sweep(stored, FILE, "s", ranked.rule)
    store = open_store(stored.env["STORE"])
    value = (pytest.approx(ranked.value), ranked.step, ranked.kind)

    best = stored.run("best", "s", "--json").json[0]
    assert best["params"] == {"shape": ranked.shape}
    assert told(best) == value
    assert told(best["weights"]) == value
    assert (best["weights"]["kept"], best["weights"]["folder"]) == (True, ranked.folder)
    said = stored.run("best", "s")
    assert f"acc={ranked.value:g} ({ranked.kind}, step {ranked.step})" in said.out
    assert "hostler pull" in said.err and "not kept" not in said.err

    line = stored.run("status", "--sweeps", "--json").json[0]["best"]
    assert (line["run"], told(line)) == (best["run"], value)
    rows = {row["id"]: row["ranked"] for row in stored.run("status", "s", "--json").json}
    assert told(rows[best["run"]]) == value
    assert upstream.best(store, "s").run == best["run"]

    frame = hostler.frame(stored.env["STORE"], sweep="s").set_index("run")
    columns = frame.loc[best["run"], ["ranked", "ranked_step", "ranked_of"]]
    assert tuple(columns) == value
    assert frame["ranked"].idxmax() == best["run"]
    plotted = plots.source(store, "s").ranked[0]
    assert (plotted.row.id, plotted.row.judged) == (best["run"], value)
    board = LiveStore(store, time.time)
    board.look()
    shown = shape.sweep(board.sweeps["s"])["best"]
    assert (shown["id"], told(shown)) == (best["run"], value)
    page = stored.run("report", "s", "-o", "s.html")
    assert page.code == 0, page.err
    text = (stored.folder / "s.html").read_text()
    assert f"{ranked.value:g} ({ranked.kind}, step {ranked.step})" in text

    archived = stored.run("archive", "--top", "1", "--json").json[0]
    assert (archived["run"], told(archived)) == (best["run"], value)
    assert archived["weights"] == f"checkpoint/{ranked.folder}".rstrip("/")
    assert stored.run("archive", "--pull", "s", "--to", "from-archive").code == 0
    assert weights_in(stored.folder / "from-archive" / archived["weights"]) == ranked.weights

    brought = stored.run("pull", best["name"], "--to", "brought", "--json").json
    assert told(brought["weights"]) == value
    folder = stored.folder / "brought" / "checkpoint" / brought["weights"]["folder"]
    assert weights_in(folder) == ranked.weights

    sweep(stored, NEXT, "s", ranked.rule)
    taken = upstream.noted(store, sweeps.load(store, "next-s").run_id(0))["begin"]
    assert taken["run"] == best["run"]
    begun = stored.run("status", "next-s", "--json").json[0]
    assert begun["metrics"]["begins"] == ranked.weights


@pytest.mark.parametrize(("kind", "ranked"), pairs([RULES[0], RULES[3]], ["kept", "last"]))
def test_search_is_told_the_value_that_best_shows(stored: World, ranked: Ranked) -> None:
    sweep(stored, LEARNS, "t", ranked.rule)
    best = stored.run("best", "t", "--top", "6", "--json").json
    assert best[0]["params"] == {"shape": ranked.shape}
    assert told(best[0]) == (ranked.value, ranked.step, ranked.kind)
    store = open_store(stored.env["STORE"])
    job = sweeps.load(store, "t")
    ends = EndReader(store, "t").update()
    assert {run: telling.values_of(end, job.looked_at) for run, end in ends.items()} == {
        one["run"]: (one["value"],) for one in best
    }


def test_run_with_nan_is_marked_and_never_wins(world: World) -> None:
    sweep(world, FILE, "s", "last")
    names = [one["name"] for one in world.run("best", "s", "--top", "9", "--json").json]
    assert names == ["s/1", "s/0"]
    for verb in ("best", "status"):
        answer = world.run(verb, "s")
        assert "acc is NaN in s/2" in answer.out + answer.err


def test_best_says_when_the_weights_of_its_step_are_not_kept(world: World) -> None:
    settle(world, str(world.store), "none")
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", text.replace("keep: 10", "keep: 1"))
    world.write("train.py", TRAIN.replace("< epoch:", "< min(epoch, 1):"))
    sweep(world, FILE, "s", "best")
    best = world.run("best", "s")
    line = "the weights of acc=0.95 (best, step 1) are not kept: the newest checkpoint is brought instead"
    assert "s/0  acc=0.95 (best, step 1)" in best.out and line in best.err
    brought = world.run("pull", "s/0", "--to", "there")
    assert brought.code == 0 and line in brought.err
    assert weights_in(world.folder / "there" / "checkpoint") == 0.1


def test_another_rule_can_be_asked_for(world: World) -> None:
    sweep(world, FILE, "s", "last")
    ask = ["best", "s", "--json", "--of"]
    assert told(world.run(*ask, "best").json[0]) == (0.95, 1, "best")
    mean = world.run(*ask, "mean:2").json[0]
    assert told(mean) == (pytest.approx(0.65), 2, "mean of 2")
    answer = world.run("best", "s", "--of", "median")
    assert answer.code == 2
    assert "'median' is not kept, best, last or mean:5" in answer.err


def test_early_stopped_run_is_done_with_reason_and_step(world: World) -> None:
    world.write("train.py", STOPS_EARLY)
    world.write(
        "e.yaml", "command: python train.py\nmetric: {name: acc, goal: max}\nparameters: {lr: [0.5]}\n"
    )
    answer = world.run("sweep", "-y", "--wait", "e.yaml", timeout=180)
    assert answer.code == 0, answer.err
    [row] = world.run("status", "e", "--json").json
    assert (row["state"], row["why"], row["step"]) == ("done", "early stopping", 5)
    assert re.search(r"done: early stopping  1.5 +5 ", world.run("status", "e").out)
    [found] = hostler.frame(str(world.store), sweep="e").to_dict("records")
    assert (found["state"], found["reason"], found["step"]) == ("done", "early stopping", 5)
    board = LiveStore(open_store(str(world.store)), time.time)
    board.look()
    [shown] = [shape.row(one) for one in board.sweeps["e"].rows.values()]
    assert (shown["state"], shown["why"], shown["step"]) == ("done", "early stopping", 5)
