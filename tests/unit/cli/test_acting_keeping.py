from __future__ import annotations

import json
from pathlib import Path

import pytest

from acting_world import COUNTS, DEAF, PRINTS, World, world
from hostler.backends.project_file import load_project, load_sweep
from hostler.cli.begin.init import goal_of
from hostler.records import layout
from hostler.records.body import decode, encode
from hostler.records.sweep import sweeps

__all__ = ["world"]


def done(world: World, name: str = "a", text: str = COUNTS) -> str:
    world.write("train.py", text)
    world.ok("run", "--name", name, "train.py", "2")
    return str(world.rows(name)[0]["id"])


def test_tags_are_given_taken_and_shown(world: World) -> None:
    done(world)
    assert world.ok("tag", "a", "good") == "a: good\n"
    assert world.ok("tag", "a", "+best", "-good", "-bash") == "a: best\n"
    assert world.ok("tag", "a") == "a: best\n"
    assert world.rows("a")[0]["tags"] == ("best",)


def test_a_tag_that_is_also_a_run_is_asked_about(world: World) -> None:
    done(world)
    done(world, "b")
    refused = world.cli("tag", "a", "b")
    assert refused.returncode == 2 and "+b means the tag" in refused.stderr
    assert world.ok("tag", "a", "b", "+both").splitlines() == ["a: both", "b: both"]


@pytest.mark.parametrize("tag", ["+", "+two words", "+a,b", "+new\nline"])
def test_a_tag_that_is_none_is_refused(world: World, tag: str) -> None:
    done(world)
    assert world.cli("tag", "a", tag).returncode == 2


def test_rm_asks_and_shows_what(world: World) -> None:
    done(world)
    no = world.cli("rm", "a", say="n\n")
    assert no.returncode == 1 and "a  done" in no.stderr and len(world.rows()) == 1
    nobody = world.cli("rm", "a")
    assert nobody.returncode == 2 and "-y answers yes" in nobody.stderr
    assert "a: in the trash" in world.ok("rm", "a", say="y\n")
    assert world.rows() == []
    assert "a: restored" in world.ok("rm", "--restore", "a")
    assert len(world.rows()) == 1


def test_rm_refuses_a_live_run(world: World) -> None:
    world.write("train.py", DEAF)
    world.ok("run", "--name", "a", "--detach", "train.py")
    refused = world.cli("rm", "-y", "a")
    assert refused.returncode == 1 and "first hostler stop a" in refused.stderr
    world.ok("stop", "--now", "a")
    world.ok("rm", "-y", "a")


def test_what_is_in_the_trash_is_not_resumed_or_retried(world: World) -> None:
    done(world)
    world.ok("rm", "-y", "a")
    for verb in ("resume", "retry"):
        refused = world.cli(verb, "a")
        assert refused.returncode == 1 and "hostler rm --restore a" in refused.stderr


def test_emptying_deletes_exactly_the_run_and_frees_its_name(world: World) -> None:
    """run-1 is no beginning of run-10."""
    one = done(world, "run-1")
    ten = done(world, "run-10")
    kept = sorted(e.key for e in world.store.list("") if ten in e.key or "/run-10/" in e.key)
    world.ok("rm", "-y", "run-1")
    assert world.cli("rm", "--empty", say="n\n").returncode == 1
    assert world.rows("run-1")
    assert "run-1: deleted" in world.ok("rm", "--empty", "-y")
    keys = sorted(entry.key for entry in world.store.list(""))
    assert not [key for key in keys if one in key or "sweeps/run-1/" in key]
    assert [key for key in keys if ten in key or "/run-10/" in key] == kept
    assert "begins at 0" in world.ok("run", "--name", "run-1", "train.py", "2")


def test_only_what_is_in_the_trash_is_deleted(world: World) -> None:
    done(world)
    refused = world.cli("rm", "--empty", "-y", "a")
    assert refused.returncode == 1 and "not in the trash" in refused.stderr
    assert world.rows("a")


def test_one_run_of_a_sweep_is_emptied_without_the_others(world: World) -> None:
    done(world)
    job = sweeps.load(world.store, "a")
    pair = type(job)("pair", job.command, runs=({}, {"x": 1}), source=job.source)
    sweeps.submit(world.store, pair)
    for run in sweeps.run_ids(pair):
        world.store.put(layout.log_fragment(run, 1, 0, 0), b"text")
    world.ok("stop", "pair")
    world.ok("rm", "-y", "pair/0")
    world.ok("rm", "--empty", "-y")
    assert [row["name"] for row in world.rows("pair") if not row["trashed"]] == ["pair/1"]
    left = [entry.key for entry in world.store.list("runs/")]
    assert not any(pair.run_id(0) in key for key in left) and any(pair.run_id(1) in key for key in left)
    assert "nothing to delete" in world.cli("rm", "--empty", "-y").stderr


def test_interrupted_deletion_is_finished_by_the_next(world: World) -> None:
    done(world)
    world.store.delete(layout.spec("a", 1))
    refused = world.cli("run", "--name", "a", "train.py", "2")
    assert refused.returncode == 1 and "hostler rm --empty finishes it" in refused.stderr
    world.ok("rm", "--empty", "-y")
    world.ok("run", "--name", "a", "train.py", "2")


def test_the_same_command_after_rm_is_a_new_run(world: World) -> None:
    done(world)
    world.ok("rm", "-y", "a")
    world.ok("run", "--name", "a", "train.py", "2")
    assert [row["name"] for row in world.rows()] == ["a-2"]


def test_pull_brings_checkpoint_outputs_and_code(world: World) -> None:
    done(world)
    world.ok("pull", "a", "--to", "there/deep")
    there = world.folder / "there" / "deep"
    assert (there / "checkpoint" / "n").read_text() == "2"
    assert (there / "outputs" / "out.txt").read_text() == "the output"
    found = json.loads(world.ok("pull", "a", "--code", "--json"))
    assert "code/train.py" in found["files"]
    assert (world.folder / "a" / "code" / "train.py").read_text() == COUNTS
    assert not list(world.folder.glob(".pull-*"))


def test_pull_leaves_large_files_there_unless_asked(world: World) -> None:
    done(world)
    few = world.cli("pull", "a", "--max", "5B")
    assert few.returncode == 0 and "out.txt of 10 B is left there; --all brings it" in few.stderr, few.stderr
    assert (world.folder / "a" / "checkpoint" / "n").exists() and not (
        world.folder / "a" / "outputs"
    ).exists()
    none = world.cli("pull", "a", "--max", "0", "--to", "none")
    assert (
        none.returncode == 1 and "its checkpoint of 1 B is left there; --checkpoint brings it" in none.stderr
    )
    world.ok("pull", "a", "--max", "0", "--checkpoint", "--to", "asked")
    world.ok("pull", "a", "--all", "--max", "0", "--to", "all")
    assert (world.folder / "all" / "outputs" / "out.txt").exists()
    assert "is not a size" in world.cli("pull", "a", "--max", "many").stderr


def test_pull_overwrites_only_after_asking(world: World) -> None:
    done(world)
    world.ok("pull", "a")
    world.ok("pull", "a")
    place = world.folder / "a" / "outputs" / "out.txt"
    place.write_text("mine")
    assert world.cli("pull", "a", say="n\n").returncode == 1
    assert world.cli("pull", "a").returncode == 2
    assert place.read_text() == "mine"
    world.ok("pull", "a", "-y")
    assert place.read_text() == "the output"


def test_pull_of_a_run_that_left_nothing_says_so(world: World) -> None:
    done(world, text=PRINTS)
    refused = world.cli("pull", "a")
    assert refused.returncode == 1 and "no checkpoint and no outputs" in refused.stderr
    assert not (world.folder / "a").exists()


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "x/../../evil"])
def test_pull_writes_nothing_outside_its_folder(world: World, name: str) -> None:
    run = done(world)
    key = layout.output_commit(run, 1)
    record = decode(world.store.get(key).data, key)
    record["files"][0]["name"] = name
    world.store.put(key, encode(record))
    refused = world.cli("pull", "a", "--outputs")
    assert refused.returncode == 1 and "leads out of its folder" in refused.stderr
    assert not list(world.folder.parent.rglob("evil"))


def test_pull_does_not_follow_a_chain_of_stored_links(world: World) -> None:
    run = done(world)
    [key] = [e.key for e in world.store.list(layout.checkpoints(run)) if e.key.endswith("COMMIT")]
    record = decode(world.store.get(key).data, key)
    file = record["files"][0]
    link = {**file, "link": "..", "sha256": "", "name": "d/up"}
    record["files"] = [
        link,
        {**link, "name": "d/out", "link": "up/.."},
        {**file, "name": "d/out/evil"},
    ]
    world.store.put(key, encode(record))
    refused = world.cli("pull", "a", "--checkpoint")
    assert refused.returncode == 1 and "no checkpoint of" in refused.stderr
    assert not list(world.folder.rglob("evil"))


def test_a_damaged_output_is_not_brought(world: World) -> None:
    run = done(world)
    world.store.put(layout.output_file(run, 1, 0), b"the outpuT")
    refused = world.cli("pull", "a", "--outputs")
    assert refused.returncode == 1 and "not what was saved" in refused.stderr
    assert not (world.folder / "a").exists()


@pytest.mark.parametrize(
    ("metric", "goal"),
    [
        ("val/loss", "min"),
        ("test_error", "min"),
        ("logloss", "min"),
        ("val.rmse", "min"),
        ("accuracy", "max"),
        ("val/acc", "max"),
        ("glossary", "max"),
    ],
)
def test_init_guesses_whether_a_metric_is_to_be_small(metric: str, goal: str) -> None:
    assert goal_of(metric) == goal


def test_init_writes_a_project_that_runs(world: World) -> None:
    world.write("train.py", PRINTS)
    said = world.ok("init", say="my name\n\nval/loss\n\n")
    assert "hostler run lr=0.1" in said
    project = load_project(world.folder / "hostler.yaml")
    assert (project.name, project.command, project.metric) == ("my name", ("python", "train.py"), "val/loss")
    assert project.goal == "min"
    assert load_sweep(world.folder / "sweep.yaml", project).objectives[0].goal == "min"
    for name in ("sweep.yaml", "setup.sh", "README.md"):
        assert (world.folder / name).read_text()
    assert "args --lr 0.1" in world.ok("run", "lr=0.1")


def test_init_keeps_what_is_there(world: World) -> None:
    world.write("setup.sh", "mine")
    world.write("hostler.yml", "name: mine")
    said = world.ok("init", "--yes")
    assert "kept as they were: hostler.yaml, setup.sh" in said
    assert (world.folder / "setup.sh").read_text() == "mine"
    assert not (world.folder / "hostler.yaml").exists()


@pytest.mark.parametrize("name", ["on", "1.10", "a: b # c", 'it\'s "so"', "ünï"])
def test_init_quotes_any_name(world: World, name: str, tmp_path: Path) -> None:
    world.ok("init", str(tmp_path / "new"), say=f"{name}\n\n\n\n")
    assert load_project(tmp_path / "new" / "hostler.yaml").name == name


def test_init_refuses_shell_commands_and_wrong_stores(world: World) -> None:
    shell = world.cli("init", say="\na && b\n\n\n")
    assert shell.returncode == 2 and "needs a shell" in shell.stderr
    store = world.cli("init", say="\n\n\ns4://x\n")
    assert store.returncode == 2 and "did you mean s3://" in store.stderr
    assert not (world.folder / "hostler.yaml").exists()


def test_nothing_waits_for_an_answer_that_cannot_come(world: World) -> None:
    refused = world.cli("init")
    assert refused.returncode == 2 and "-y takes the defaults" in refused.stderr


def test_what_is_pulled_is_no_part_of_the_code(world: World) -> None:
    world.write("train.py", "import os; open(os.environ['HOSTLER_OUTPUT_DIR'] + '/x', 'w').write('x')\n")
    world.ok("run", "--name", "a", "train.py")
    world.ok("pull", "a")
    assert (world.folder / "a" / "outputs" / "x").is_file()
    assert "a is done already" in world.cli("run", "--name", "a", "train.py").stderr
