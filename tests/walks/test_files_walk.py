"""Files of runs as a person meets them: kept and brought, missed and explained, made and left out."""

from __future__ import annotations

import subprocess

import pytest

from acting_world import World, world

__all__ = ["world"]

WRITES = """
from pathlib import Path
Path("checkpoints").mkdir()
Path("checkpoints/model.pt").write_text("w" * 3000)
Path("lightning_logs").mkdir()
Path("lightning_logs/m.csv").write_text("1")
"""


def test_files_that_a_script_wrote_are_offered_and_pulled(world: World) -> None:
    world.write("train.py", WRITES)
    done = world.cli("run", "--name", "a", "train.py")
    assert done.returncode == 0 and "kept 2 files (3KB); hostler pull a brings them here" in done.stderr
    shown = world.ok("show", "a")
    assert "checkpoints/model.pt" in shown and "hostler pull a" in shown
    world.ok("pull", "a", "--to", "got")
    assert len((world.folder / "got/outputs/checkpoints/model.pt").read_text()) == 3000
    assert (world.folder / "got/outputs/lightning_logs/m.csv").read_text() == "1"


def test_pull_names_large_files_and_the_command_for_them(world: World) -> None:
    world.write("train.py", WRITES)
    world.ok("run", "--name", "a", "train.py")
    left = world.cli("pull", "a", "--max", "0KB", "--to", "got")
    assert left.returncode == 1 and "checkpoints/model.pt of 3 kB is left there" in left.stderr
    assert "hostler pull a --all" in left.stderr and not (world.folder / "got").exists()


def test_above_the_limit_run_show_and_pull_say_so(world: World) -> None:
    world.write("train.py", WRITES)
    line = (
        "not kept: checkpoints/ (1 file, 3 KB) is over the limit of 2 KB; "
        "add  outputs: [checkpoints/]  or  outputs: none  to hostler.yaml"
    )
    done = world.cli("run", "--name", "a", "train.py", HOSTLER_OUTPUTS_MAX="2000")
    assert done.returncode == 0 and line in done.stdout
    assert line in world.ok("show", "a") and line in world.cli("pull", "a", "--to", "got").stderr
    world.write("hostler.yaml", "outputs: [checkpoints/]")
    again = world.cli("run", "--name", "b", "train.py", "2", HOSTLER_OUTPUTS_MAX="2000")
    assert "not kept" not in again.stdout and "kept 2 files" in again.stderr


def test_a_missed_ignored_file_is_explained_and_both_ways_work(world: World) -> None:
    world.write(".gitignore", "*.bin\n")
    world.write("data/shakespeare/train.bin", "tokens")
    world.write("data/shakespeare/prepare.py", "pass")
    world.write("train.py", "print(open('data/shakespeare/train.bin').read())")
    world.write("hostler.yaml", "retries: 0")
    failed = world.cli("run", "--name", "a", "train.py")
    rule = "train.bin is in the project, but was left out of the code by *.bin in .gitignore (line 1)"
    data = "data: {shakespeare: {path: data/shakespeare, at: data/shakespeare}}"
    back = "!/data/shakespeare/train.bin"
    for said in (failed.stderr, world.ok("show", "a"), world.ok("errors", "a")):
        assert rule in said and data in said and back in said
    world.write("hostler.yaml", data)
    assert world.ok("run", "--name", "b", "train.py").endswith("tokens\n")
    world.write("hostler.yaml", "")
    world.write(".hostlerignore", back)
    assert world.ok("run", "--name", "c", "train.py") == "tokens\n"


def test_data_in_the_place_of_code_is_refused_before_submission(world: World) -> None:
    world.write("train.py", "pass")
    world.write("corpus/train.py", "other")
    world.write("hostler.yaml", "data: {c: {path: corpus/train.py, at: train.py}}")
    refused = world.cli("run", "train.py")
    assert refused.returncode == 2 and "data 'c': at: train.py is taken" in refused.stderr
    assert "choose another `at:`" in refused.stderr and world.rows() == []


@pytest.mark.needs("git")
def test_a_report_and_the_store_leave_the_same_command_done(world: World) -> None:
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    world.write("train.py", "print('once')")
    assert world.ok("run", "--name", "ed", "train.py") == "once\n"
    for words in (("report", "ed"), ("df", "--csv", "runs.csv"), ("plot", "completion", "-o", "plots/c.svg")):
        world.ok(*words)
    world.cli("run", "--name", "ed", "train.py")
    assert len(world.rows()) == 1
    status = ["git", "-C", str(world.folder), "status", "--porcelain"]
    seen = subprocess.run(status, check=True, capture_output=True, text=True).stdout
    assert "ed.html" in seen and ".hostler" not in seen


def test_pulled_files_in_the_project_are_not_code(world: World) -> None:
    world.write("train.py", WRITES)
    world.ok("run", "--name", "a", "train.py")
    world.ok("pull", "a", "--to", "got")
    world.cli("run", "--name", "a", "train.py")
    assert len(world.rows()) == 1
