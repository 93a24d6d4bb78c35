"""Sweeps from file to best run, with real workers: edited, repaired, bounded, on two fleets."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_world import Answer, World, eventually
from hostler.records.sweep import sweeps
from hostler.store import open_store

SOAK = bool(os.environ.get("HOSTLER_SOAK"))
TRAIN = """
import argparse, json, os, time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--width", type=int, default=1)
parser.add_argument("--nap", type=float, default=0.0)
given = parser.parse_args()
marks = os.environ.get("MARKS")
if marks:
    name = os.environ["HOSTLER_RUN"] + "-" + os.environ["HOSTLER_ATTEMPT"]
    Path(marks, name).write_text(str(time.time()))
time.sleep(given.nap)
print(json.dumps({"step": 1, "acc": given.lr * given.width}), flush=True)
if marks:
    with open(Path(marks, name), "a") as file:
        file.write(" " + str(time.time()))
"""
HELD = TRAIN.replace("time.sleep(given.nap)", "while not Path(marks + '-go').exists(): time.sleep(0.05)")
FILE = """
name: s
command: python train.py
metric: acc
parameters:
  lr: [0.1, 0.2]
  width: [1, 2]
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.write("train.py", TRAIN)
    world.write("sweep.yaml", FILE)
    world.env["MARKS"] = str(tmp_path / "marks")
    (tmp_path / "marks").mkdir()
    yield world
    world.close()


def started(world: World) -> Counter[int]:
    """index → how many processes were started for it."""
    return Counter(int(path.name[:7]) for path in Path(world.env["MARKS"]).iterdir())


def most_at_once(world: World) -> int:
    spans = [path.read_text().split() for path in Path(world.env["MARKS"]).iterdir()]
    events = [(float(s[0]), 1) for s in spans] + [(float(s[1]), -1) for s in spans if len(s) > 1]
    now = most = 0
    for _, change in sorted(events):
        now += change
        most = max(most, now)
    return most


def rows(world: World, name: str = "s") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.run("status", name, "--json").json
    return found


def done(world: World, *words: str) -> Answer:
    answer = world.run("sweep", "-y", "--wait", *words, timeout=120)
    assert answer.code == 0, answer.err
    return answer


def test_a_grid_file_from_plan_to_best(world: World) -> None:
    plan = world.run("plan", "sweep.yaml", "--json")
    assert plan.json["runs"] == 4 and plan.json["new"] == 4
    assert not world.store.exists()
    done(world, "sweep.yaml")
    assert [row["state"] for row in rows(world)] == ["done"] * 4
    best = world.run("best", "s", "--json").json[0]
    assert (best["params"], best["value"]) == ({"lr": 0.2, "width": 2}, 0.4)
    assert "s: 4 runs: 4 done; best s/3 acc=0.4 (last, step 1) (lr=0.2 width=2)" in world.run("status").out
    assert world.run("plan", "sweep.yaml", "--json").json["states"] == {"done": 4}
    again = world.run("sweep", "-y", "sweep.yaml")
    assert "nothing to do" in again.err
    assert started(world) == dict.fromkeys(range(4), 1)


def test_an_edited_file_runs_only_what_is_new(world: World) -> None:
    done(world, "sweep.yaml")
    before = {row["index"]: row["id"] for row in rows(world)}
    world.write("sweep.yaml", FILE.replace("[1, 2]", "[2, 3]"))
    plan = world.run("plan", "sweep.yaml").out
    assert "2 new, 2 done" in plan
    assert "no longer in the file but started: 2 runs, left alone (2 done)" in plan
    assert "other code" not in plan  # the sweep's own file is no part of the code
    done(world, "sweep.yaml")
    found = rows(world)
    assert {row["index"]: row["id"] for row in found[:4]} == before
    assert [row["params"] for row in found[4:]] == [{"lr": 0.1, "width": 3}, {"lr": 0.2, "width": 3}]
    assert started(world) == dict.fromkeys(range(6), 1)


def test_file_that_would_change_finished_runs_is_refused_first(world: World) -> None:
    done(world, "sweep.yaml")
    world.write("sweep.yaml", FILE.replace("python train.py", "python train.py --nap 0.1"))
    for verb in (["plan"], ["sweep", "-y"], ["sweep", "-y", "--dry-run"]):
        answer = world.run(*verb, "sweep.yaml")
        assert answer.code == 2
        assert "would change runs that have started: the command was" in answer.err
    assert started(world) == dict.fromkeys(range(4), 1)


def test_overwriting_asks_for_the_name_and_moves_to_the_trash(world: World) -> None:
    done(world, "sweep.yaml")
    assert "-o asks for the sweep's name" in world.run("sweep", "-o", "-y", "sweep.yaml").err
    assert _typed(world, "no\n").code == 1
    assert len(rows(world)) == 4
    answer = _typed(world, "s\n")
    assert answer.code == 0, answer.err
    assert world.run("wait", "s", timeout=120).code == 0
    assert [row["index"] for row in rows(world)] == [4, 5, 6, 7]
    assert world.run("rm", "--restore", "s/0").code == 0
    assert [row["index"] for row in rows(world)] == [0, 4, 5, 6, 7]


def _typed(world: World, text: str) -> Answer:
    return world.answered("sweep", "-o", "sweep.yaml", given=text)


def test_nothing_is_overwritten_while_it_runs(world: World) -> None:
    world.write("sweep.yaml", FILE.replace("metric", "parallel: 2\nmetric") + "  nap: 600\n")
    world.run("sweep", "-y", "sweep.yaml")
    eventually(lambda: len(started(world)) == 2)
    answer = _typed(world, "s\n")
    assert answer.code == 2 and "are running" in answer.err
    world.run("stop", "--now", "s")


REPAIR = 200 if SOAK else 8


@pytest.mark.parametrize("dose", [pytest.param(REPAIR, marks=pytest.mark.soak if SOAK else ())])
def test_only_the_failed_are_tried_again_with_the_repaired_code(world: World, dose: int) -> None:
    broken = TRAIN + f"\nassert round(given.lr * {dose}) % 4 != 0, 'a bug'\n"
    world.write("train.py", broken)
    rates = [n / dose for n in range(dose)]
    world.write(
        "sweep.yaml",
        json.dumps({"name": "s", "command": "python train.py", "metric": "acc", "retries": 0, "parallel": 4,
                    "limits": {"failures": dose}, "parameters": {"lr": rates}}),
    )  # fmt: skip
    assert world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=600).code == 1
    states = Counter(row["state"] for row in rows(world))
    assert states == {"failed": dose // 4, "done": dose - dose // 4}
    (old,) = {row["code"] for row in rows(world)}
    world.write("train.py", TRAIN)
    answer = world.run("retry", "s")
    assert "train.py changed" in answer.err and "-assert round(" in answer.err
    assert world.run("wait", "s", timeout=600).code == 0
    found = rows(world)
    assert Counter(row["state"] for row in found) == {"done": dose}
    codes = {row["index"]: row["code"] for row in found}
    assert {i for i, code in codes.items() if code != old} == set(range(0, dose, 4))
    assert len(set(codes.values())) == 2
    assert started(world) == {i: 2 if i % 4 == 0 else 1 for i in range(dose)}
    plan = world.run("plan", "sweep.yaml", "--json").json
    assert len(plan["other_code"]) == dose - dose // 4
    codes_said = world.run("status", "--sweeps", "--json").json[0]["codes"]
    assert codes_said[old] == dose - dose // 4


def test_finished_runs_of_other_code_are_repeated_only_if_asked(world: World) -> None:
    done(world, "sweep.yaml")
    world.write("train.py", TRAIN + "# better\n")
    plan = world.run("plan", "sweep.yaml").out
    assert "done by other code: s/0, s/1, s/2, s/3; --rerun changed repeats them" in plan
    done(world, "sweep.yaml")
    assert started(world) == dict.fromkeys(range(4), 1)
    done(world, "--rerun", "changed", "sweep.yaml")
    assert started(world) == dict.fromkeys(range(4), 2)
    assert "other code" not in world.run("plan", "sweep.yaml").out


def test_resubmitting_skips_what_is_queued_running_or_done(world: World) -> None:
    """The fault this replaces: live jobs submitted a second time."""
    world.write("train.py", HELD)
    world.write("sweep.yaml", FILE.replace("parameters:", "parallel: 1\nparameters:"))
    world.run("sweep", "-y", "--no-start", "sweep.yaml")
    assert world.run("stop", "s/3").code == 0
    world.run("sweep", "-y", "sweep.yaml")
    eventually(lambda: len(started(world)) == 1)
    answer = world.run("sweep", "-y", "-r", "--json", "sweep.yaml")
    assert answer.json["reopened"] == 1
    Path(world.env["MARKS"] + "-go").touch()
    assert world.run("wait", "s", timeout=120).code == 0
    assert started(world) == dict.fromkeys(range(4), 1)


def test_parallel_limit_holds_and_can_be_changed(world: World) -> None:
    world.write("train.py", HELD)
    world.write("sweep.yaml", FILE.replace("[1, 2]", "[1, 2, 3, 4]").replace("metric", "parallel: 2\nmetric"))
    world.write("hostler.yaml", "fleets: {a: {backend: local, workers: 3, slots: 2}}\n")
    world.run("sweep", "-y", "--on", "a", "sweep.yaml")
    eventually(lambda: len(started(world)) == 2, 60)
    assert world.run("parallel", "s", "4").out.startswith("s: at most 4 at once")
    eventually(lambda: len(started(world)) == 4, 60)
    Path(world.env["MARKS"] + "-go").touch()
    assert world.run("wait", "s", timeout=120).code == 0
    assert most_at_once(world) == 4
    assert started(world) == dict.fromkeys(range(8), 1)


def test_budget_of_hours_pauses_and_resume_goes_on_after_raising(world: World) -> None:
    world.write(
        "sweep.yaml", FILE.replace("metric", f"budget: {{hours: {3 / 3600}}}\nmetric") + "  nap: 60\n"
    )
    world.run("sweep", "-y", "sweep.yaml")
    eventually(lambda: world.in_state("paused") > 0)
    states = Counter(row["state"] for row in rows(world))
    assert states == {"paused": 1, "queued": 3}
    assert "halted: its budget of 3s is used up" in world.run("status", "s").out
    eventually(lambda: not world.processes(holding="hostler.worker"))
    refused = world.run("resume", "s")
    assert refused.code == 2 and "s: its budget of 3s is used up" in refused.err
    hint = re.search(r"used since .*; set hours: (.*) in sweep.yaml, then hostler resume s", refused.err)
    assert hint and float(hint[1]) > 3 / 3600, refused.err
    world.write("sweep.yaml", FILE.replace("metric", "budget: {hours: 1}\nmetric") + "  nap: 60\n")
    resumed = world.run("resume", "s")
    assert resumed.code == 0 and "s/0: queued again" in resumed.out, resumed.err
    eventually(lambda: world.in_state("running") > 0)
    world.run("stop", "--now", "s")


def test_sweep_that_failed_wholly_is_repaired_and_submitted_again(world: World) -> None:
    world.write("sweep.yaml", FILE.replace("train.py", "train.py --nonsense") + "retries: 0\n")
    assert world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=120).code == 1
    failed = world.run("best")
    assert failed.err.splitlines() == [
        "hostler: the newest sweep is s",
        "hostler: all 4 runs of s failed",
        "  → hostler errors s",
    ]
    world.write("sweep.yaml", FILE)
    line = next(line for line in world.run("plan", "sweep.yaml").out.splitlines() if "run 4:" in line)
    answer = world.answered("sweep", "--wait", "sweep.yaml", given="y\n")
    assert answer.code == 0 and "all 4 runs failed. Replace them? [y/N]" in answer.err
    assert [row["index"] for row in rows(world)] == [4, 5, 6, 7]
    ran = world.run("show", "s/4", "--json").json["command"]
    assert line == f"  run 4: {ran}", "the plan shows the command as it is executed"


def test_two_fleets_of_different_shapes_lose_one_half_way(world: World) -> None:
    world.write(
        "hostler.yaml",
        "fleets:\n  narrow: {backend: local, workers: 1, slots: 1}\n"
        "  wide: {backend: local, workers: 2, slots: 2}\n",
    )
    world.write("train.py", HELD)
    world.write("sweep.yaml", FILE.replace("[1, 2]", "[1, 2, 3, 4, 5, 6]"))
    world.run("sweep", "-y", "--on", "narrow", "sweep.yaml")
    world.run("sweep", "-y", "--on", "wide", "sweep.yaml")
    eventually(lambda: len(started(world)) == 5)  # one on the narrow fleet, four on the wide one
    assert world.run("stop", "--workers", "--now", "--on", "wide").code == 0
    Path(world.env["MARKS"] + "-go").touch()
    assert world.run("wait", "s", timeout=120).code == 0
    found = rows(world)
    assert [row["state"] for row in found] == ["done"] * 12
    assert [row["metrics"]["acc"] for row in found] == [
        pytest.approx(row["params"]["lr"] * row["params"]["width"]) for row in found
    ]
    interrupted = {index for index, n in started(world).items() if n > 1}
    assert len(interrupted) == 4  # what the removed fleet held


def test_result_of_another_sweep_is_reused_only_if_asked(world: World) -> None:
    done(world, "sweep.yaml")
    world.write("other.yaml", FILE.replace("name: s", "name: other").replace("[1, 2]", "[2, 3]"))
    plan = world.run("plan", "other.yaml", "--json").json
    assert [one["index"] for one in plan["elsewhere"]] == [0, 2]
    done(world, "--reuse", "other.yaml")
    found = rows(world, "other")
    assert [bool(row["copy_of"]) for row in found] == [True, False, True, False]
    assert [row["state"] for row in found] == ["done"] * 4
    assert found[0]["metrics"]["acc"] == pytest.approx(0.2)
    assert len(list(Path(world.env["MARKS"]).glob("*-other-*"))) == 2


def test_a_trial_tells_before_anything_is_submitted(world: World) -> None:
    world.write("train.py", TRAIN + "\nraise ValueError('no good')\n")
    world.write("hostler.yaml", "metrics: none\n")
    answer = world.run("sweep", "-y", "--try", "sweep.yaml")
    assert answer.code == 1
    assert "no good" in answer.err and "nothing was submitted" in answer.err
    assert not (world.store / "sweeps").exists()
    (world.folder / "hostler.yaml").unlink()
    world.write("train.py", TRAIN.replace('"acc"', '"accuracy"'))
    unlogged = world.run("sweep", "-y", "--try", "sweep.yaml")
    assert "acc" in unlogged.err
    world.write("train.py", TRAIN)
    answer = world.run("sweep", "-y", "--try", "--wait", "sweep.yaml", timeout=120)
    assert answer.code == 0 and "the first run works" in answer.err
    eventually(lambda: not world.processes())


def test_submitting_without_starting_prints_the_worker_s_command(world: World) -> None:
    answer = world.run("sweep", "-y", "--no-start", "sweep.yaml")
    assert answer.out.split() == ["hostler", "worker", str(world.store), "--sweep", "s"]
    assert [row["state"] for row in rows(world)] == ["queued"] * 4
    assert not world.processes()
    assert world.run(*answer.out.split()[1:], timeout=60).code == 0
    assert [row["state"] for row in rows(world)] == ["done"] * 4


def test_sweep_is_stopped_resumed_paused_and_searched_as_a_whole(world: World) -> None:
    world.write("sweep.yaml", FILE.replace("[1, 2]", "[1, 2]\n  nap: 0.4"))
    world.run("sweep", "-y", "--no-start", "sweep.yaml")
    assert world.run("pause", "s").code == 0
    assert {row["state"] for row in rows(world)} == {"paused"}
    assert world.run("stop", "s").code == 0
    assert {row["state"] for row in rows(world)} == {"stopped"}
    assert world.run("resume", "s").code == 0
    assert world.run("wait", "s", timeout=120).code == 0
    out = world.run("logs", "--grep", r"acc.: 0\.4", "s").out
    assert out.strip().startswith("s/3: ") and len(out.splitlines()) == 1


def test_sweeps_runs_are_pulled_into_folders_with_telling_names(world: World) -> None:
    world.write(
        "train.py", TRAIN + "\nPath(os.environ['HOSTLER_OUTPUT_DIR'], 'r.txt').write_text(str(given.lr))\n"
    )
    done(world, "sweep.yaml")
    assert world.run("pull", "--folders", "params", "--to", "got", "s").code == 0
    names = sorted(path.name for path in (world.folder / "got").iterdir())
    assert names == ["0_lr=0.1+width=1", "1_lr=0.1+width=2", "2_lr=0.2+width=1", "3_lr=0.2+width=2"]
    assert (world.folder / "got" / names[3] / "outputs" / "r.txt").read_text() == "0.2"


def test_million_runs_are_handled_like_a_small_sweep(world: World) -> None:
    axes = "".join(f"  {name}: {{start: 1, step: 1, count: 100}}\n" for name in ("lr", "width", "nap"))
    world.write(
        "sweep.yaml", "name: s\ncommand: python train.py\nmetric: acc\nstyle: flags\nparameters:\n" + axes
    )
    world.write("train.py", TRAIN.replace("time.sleep(given.nap)", "time.sleep(0.2)"))
    assert world.run("plan", "sweep.yaml", "--json").json["runs"] == 1_000_000
    world.run("sweep", "-y", "sweep.yaml")
    eventually(lambda: len(started(world)) >= 3, 60)
    assert world.run("stop", "s").code == 0
    eventually(lambda: not world.processes(holding="hostler.worker"), 60)
    summary = world.run("status", "--sweeps", "--json").json[0]
    assert summary["runs"] == 1_000_000
    assert summary["halted"] == "stopped by a person"
    assert sum(summary["counts"].values()) == 1_000_000
    begun = len(started(world))
    world.run("resume", "s")
    eventually(lambda: len(started(world)) > begun + 1, 60)
    assert world.run("best", "s").code == 0
    world.run("stop", "s")
    eventually(lambda: not world.processes(holding="hostler.worker"), 60)
    assert len(list((world.store / "sweeps" / "s" / "spec").iterdir())) == 1


def test_who_says_no_or_only_wants_to_see_writes_nothing(world: World) -> None:
    for typed, code, said in (("n\n", 1, "nothing was submitted"), ("", 2, "-y answers yes")):
        answer = world.answered("sweep", "sweep.yaml", given=typed)
        assert (answer.code, said in answer.err) == (code, True)
    for option in ("-n", "-d", "--dry-run"):
        shown = world.run("sweep", option, "sweep.yaml")
        assert "s: 4 runs (grid)" in shown.out and "hostler.worker" in shown.out
    assert not world.store.exists()
    assert not world.processes()


def test_a_metric_that_nobody_logs_is_said(world: World) -> None:
    world.write("sweep.yaml", FILE.replace("metric: acc", "metric: val/acc"))
    done(world, "sweep.yaml")
    assert "no finished run has logged val/acc; logged: acc" in world.run("status", "s").err
    answer = world.run("best", "s")
    assert answer.code == 1 and "--metric acc" in answer.err
    assert world.run("best", "s", "--metric", "acc").out.startswith("s/3  acc=0.4")


def test_the_sweep_file_that_init_writes_is_one(world: World) -> None:
    assert world.run("init", "-y", "fresh").code == 0
    world.folder = world.folder / "fresh"
    world.write("train.py", TRAIN)
    assert world.run("plan", "sweep.yaml", "--json").json["runs"] == 6


def test_any_text_is_a_name_and_arguments_stay_whole(world: World) -> None:
    text = 'a/b "c"; echo x\n' + "y" * 300
    world.write("train.py", "import sys\nprint(sys.argv[1:], flush=True)\n")
    value = 'it\'s; echo $HOME "q"'
    file = {"name": text, "command": "python train.py", "parameters": {"v": [value, "-x"]}}
    world.write("sweep.json", json.dumps(file))
    assert world.run("sweep", "-y", "--wait", "sweep.json", timeout=120).code == 0
    (name,) = (path.name for path in (world.store / "sweeps").iterdir())
    assert len(name) <= 48
    assert str(["--v", value]) in world.run("logs", f"{name}/0").out
    assert str(["--v=-x"]) in world.run("logs", f"{name}/1").out


def test_plan_of_another_tools_file_needs_no_command(world: World) -> None:
    job = "job_details: {name: j, output_dir: out}\nparameters: {lr: [1, 2], width: [1, 2, 3]}\n"
    world.write("job.yaml", job)
    (world.folder / "train.py").unlink()  # it would be the command
    answer = world.run("plan", "job.yaml")
    assert answer.code == 0 and "j: 6 runs (grid)" in answer.out
    assert "no command here" in answer.err and "job_details.output_dir: " in answer.err
    assert world.run("plan", "job.yaml", "--json").json["runs"] == 6
    answer = world.run("sweep", "-y", "job.yaml")
    assert answer.code == 2 and "job.yaml:1: no command here or in hostler.yaml" in answer.err
    assert not world.store.exists()


WANDB = """
program: train.py
name: my sweep
method: grid
metric: {name: acc, goal: maximize}
parameters:
  lr: {values: [0.1, 0.2]}
  width: {value: 3}
command: ["${env}", "python", "${program}", "${envvar:WHERE}", "${args_json}"]
"""
READS = "import json, sys\nprint(json.dumps({'acc': json.loads(sys.argv[2])['lr'], 'x': len(sys.argv[1])}))\n"


def test_wandb_file_with_macros_runs_and_is_found_by_title(world: World) -> None:
    world.write("train.py", READS)
    world.write("wandb.yaml", WANDB)
    world.write("hostler.yaml", "env: {WHERE: 'a b'}\n")
    answer = world.run("sweep", "-y", "--wait", "wandb.yaml", timeout=120)
    assert answer.code == 0, answer.err
    (best,) = world.run("best", "my sweep", "--json").json
    assert best["params"] == {"lr": 0.2, "width": 3}
    found = world.run("status", "my sweep", "--json").json
    assert [(row["metrics"]["acc"], row["metrics"]["x"]) for row in found] == [(0.1, 3), (0.2, 3)]
    again = world.answered("sweep", "-o", "--wait", "wandb.yaml", given="my sweep\n")
    assert again.code == 0, again.err
    assert [row["index"] for row in world.run("status", "my sweep", "--json").json] == [2, 3]


@pytest.mark.parametrize("same", [False, True])
def test_retry_of_a_halted_sweep_includes_its_waiting_runs(world: World, same: bool) -> None:
    """Errors have halted it: the rest would meet the same ones with the code it was submitted with."""
    old = "import os\nif not os.path.exists(os.environ['MARKS'] + '-go'): raise ValueError('boom')\n" + TRAIN
    world.write("train.py", old)
    given = FILE.replace("[0.1, 0.2]", "[1, 2, 3, 4]") + "retries: 0\nlimits: {failures: 3}\nparallel: 1\n"
    world.write("sweep.yaml", given)
    assert world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=120).code == 1
    before = Counter(row["state"] for row in rows(world))
    assert before["failed"] >= 3 and before["queued"] >= 1
    (broken,) = {row["code"] for row in rows(world) if row["state"] == "failed"}
    world.write("train.py", TRAIN)
    Path(world.env["MARKS"] + "-go").touch()
    answer = world.run("retry", "s", *(["--same-code"] if same else []))
    assert ("s: queued runs also use today's code" in answer.err) == (not same)
    assert world.run("wait", "s", timeout=120).code == 0
    found = rows(world)
    assert Counter(row["state"] for row in found) == {"done": 8}
    assert {row["code"] == broken for row in found} == {same}


def test_waiting_for_a_sweep_halted_by_errors_ends(world: World) -> None:
    world.write("train.py", "raise ValueError('boom')")
    world.write("sweep.yaml", FILE.replace("[0.1, 0.2]", "[1, 2, 3, 4, 5, 6]") + "retries: 0\n")
    answer = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=120)
    assert answer.code == 1
    assert "s is halted (the same error 5 times in a row" in answer.err and "hostler retry s" in answer.err
    assert "nobody works on" not in answer.err, "a worker would leave at once"
    watched = world.run("status", "--watch", "s", timeout=120)
    assert "halted" in watched.out
    world.write("train.py", TRAIN)
    answer = world.run("sweep", "-r", "-y", "--wait", "sweep.yaml", timeout=120)
    assert answer.code == 0, answer.err


def test_auto_is_submitted_recorded_and_set_by_hand(world: World) -> None:
    world.write("sweep.yaml", FILE.replace("metric", "parallel: auto\nmetric"))
    answer = world.run("sweep", "-y", "--no-start", "sweep.yaml")
    assert "as many at a time as fit in this machine's memory" in answer.err
    store = open_store(str(world.folder / ".hostler"))
    assert sweeps.load(store, "s").auto
    assert world.run("parallel", "s", "2").out.startswith("s: at most 2 at once")
    assert (sweeps.load(store, "s").parallel, sweeps.load(store, "s").auto) == (2, True)
    assert world.run("parallel", "s", "auto").out.startswith("s: as many at once as fit")
    assert (sweeps.load(store, "s").parallel, sweeps.load(store, "s").auto) == (None, True)
    assert "'many' is not a number of runs" in world.run("parallel", "s", "many").err


def test_sweep_on_this_machine_says_what_would_allow_more(world: World) -> None:
    world.write("sweep.yaml", FILE)
    cpus = len(os.sched_getaffinity(0))
    line = "1 at a time" + (f"; `resources: {{cpus: 1}}` allows {cpus}" if cpus > 1 else "")
    assert f"  {line}\n" in world.run("plan", "sweep.yaml").out
    world.write("sweep.yaml", FILE.replace("metric", "resources: {cpus: 1}\nmetric"))
    assert "at a time" not in world.run("plan", "sweep.yaml").out
