"""`hostler run train.py --lr 0.1` on this machine, from the command line to the exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress

import pytest

from acting_world import COUNTS, DEAF, PRINTS, World, wait_for, world
from hostler import proctable
from hostler.records import layout

__all__ = ["world"]


def reading(child: subprocess.Popen[str], word: str) -> str:
    """What a child prints, up to and with the line that holds the word."""
    assert child.stdout
    said = ""
    for line in child.stdout:
        said += line
        if word in line:
            return said
    raise AssertionError(f"it never said {word!r}: {said}")


def rest(child: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = child.communicate(timeout=60)
    return child.returncode, said


def test_run_prints_the_scripts_output_and_exits_with_its_code(world: World) -> None:
    world.write("train.py", PRINTS + "sys.exit(int(sys.argv[-1]))\n")
    done = world.cli("run", "train.py", "--lr", "0.1", "0")
    assert (done.returncode, done.stdout) == (0, "args --lr 0.1 0\n")
    assert world.cli("run", "train.py", "--lr", "0.1", "3").returncode == 3


def test_script_killed_by_a_signal_is_128_and_the_signal(world: World) -> None:
    world.write("train.py", "import os\nos.kill(os.getpid(), 11)\n")
    world.write("hostler.yaml", "retries: 0")
    assert world.cli("run", "train.py").returncode == 139


def test_a_run_that_is_paused_meanwhile_exits_75(world: World) -> None:
    world.write("train.py", COUNTS)
    child = world.spawn("run", "--name", "a", "train.py", "1000")
    reading(child, "begins")
    world.ok("pause", "a")
    code, said = rest(child)
    assert code == 75 and "hostler resume a continues it" in said


def test_ctrl_c_saves_and_the_same_command_goes_on(world: World) -> None:
    world.write("train.py", COUNTS)
    child = world.spawn("run", "--name", "a", "train.py", "1000")
    reading(child, "begins at 0")
    child.send_signal(signal.SIGINT)
    code, said = rest(child)
    assert code == 130 and "save and stop" in said and world.state("a") == "stopped"
    again = world.spawn("run", "--name", "a", "train.py", "1000")
    said = reading(again, "goes on from checkpoint")
    assert "a continues" in said
    assert int(reading(again, "begins at").rpartition("begins at ")[2]) > 0
    again.send_signal(signal.SIGTERM)
    assert rest(again)[0] == 143
    assert world.until("a", "stopped")


def test_ctrl_c_twice_kills_a_script_that_does_not_listen(world: World) -> None:
    world.env["HOSTLER_GRACE"] = "60"
    world.write("train.py", DEAF)
    child = world.spawn("run", "--name", "a", "train.py")
    reading(child, "deaf")
    child.send_signal(signal.SIGINT)
    reading(child, "Ctrl-C again kills it")
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    code, said = rest(child)
    assert code == 130 and "killed" in said and time.monotonic() - begun < 50
    assert world.state("a") == "stopped"


def test_ctrl_c_twice_leaves_other_runs_alone(world: World) -> None:
    world.write("train.py", COUNTS)
    world.ok("run", "--name", "other", "--detach", "train.py", "1000")
    world.until("other", "running")
    world.write("train.py", DEAF)
    child = world.spawn("run", "--name", "a", "train.py")
    reading(child, "deaf")
    for word in ("Ctrl-C again", "killed"):
        child.send_signal(signal.SIGINT)
        reading(child, word)
    rest(child)
    [row] = world.rows("other")
    assert (row["state"], row["attempt"], row["stale"]) == ("running", 1, False)


def test_the_same_command_again_repeats_nothing(world: World) -> None:
    world.write("train.py", PRINTS)
    world.ok("run", "train.py", "--lr", "0.1")
    again = world.cli("run", "train.py", "--lr", "0.1")
    assert (again.returncode, again.stdout) == (0, "") and "done already" in again.stderr
    assert world.ok("run", "--again", "train.py", "--lr", "0.1") == "args --lr 0.1\n"
    assert len(world.rows()) == 2


def test_changed_code_of_a_finished_run_is_a_new_run(world: World) -> None:
    world.write("train.py", PRINTS)
    world.ok("run", "--name", "a", "train.py")
    world.write("train.py", PRINTS + "print('changed')\n")
    assert "changed" in world.ok("run", "--name", "a", "train.py")
    assert {row["name"] for row in world.rows()} == {"a", "a-2"}


def test_the_same_command_of_a_running_run_follows_it(world: World) -> None:
    go = world.folder.parent / "go"
    lines = ["import os, time", "print('begins', flush=True)", f"while not os.path.exists({str(go)!r}):"]
    world.write("train.py", "\n".join([*lines, "    time.sleep(0.05)\n"]))
    world.ok("run", "--name", "a", "--detach", "train.py")
    world.until("a", "running")
    child = world.spawn("run", "--name", "a", "train.py")
    said = reading(child, "under way already")
    go.touch()
    code, more = rest(child)
    assert code == 0 and (said + more).count("begins") == 1
    assert [row["attempt"] for row in world.rows()] == [1]


def test_every_view_shows_the_error_its_line_and_the_retry(world: World) -> None:
    world.write("src/model.py", "def build():\n    return len(1)\n")
    world.write("train.py", "import sys\nsys.path.insert(0, 'src')\nimport model\nmodel.build()\n")
    message = "TypeError: object of type 'int' has no len() (src/model.py:2)"
    frame = 'File "src/model.py", line 2, in build'
    done = world.cli("run", "--name", "a", "train.py")
    assert done.returncode == 1 and f"a failed (error): {message}\n" in done.stderr
    assert "→ fix the script, then hostler retry a\n" in done.stderr
    assert frame in done.stdout and done.stdout.count("Traceback") == 1, (
        "tried once, shown with the user's path"
    )
    told = world.cli("status")
    assert f"a failed: {message}\n" in told.stderr and "hostler retry a\n" in told.stderr
    for words in (("show", "a"), ("errors",)):
        shown = world.ok(*words)
        assert message in shown and frame in shown and "hostler retry a" in shown, words
    for words in (("status", "--json"), ("show", "a", "--json")):
        found = json.loads(world.ok(*words))
        failure = (found[0] if isinstance(found, list) else found)["failure"]
        assert failure["message"] == message and frame in failure["traceback"], words
    [group] = json.loads(world.ok("errors", "--json"))
    assert (group["message"], group["retry"]) == (message, "hostler retry a")
    world.write("src/model.py", "def build():\n    return 1\n")
    world.ok("retry", "a", "-y")
    assert world.until("a", "done", "failed") == "done"


def test_same_command_of_a_failed_run_continues_with_todays_code(world: World) -> None:
    world.write("train.py", "import sys\nsys.exit(4)\n")
    assert world.cli("run", "--name", "a", "train.py").returncode == 4
    world.write("train.py", PRINTS)
    done = world.cli("run", "--name", "a", "train.py")
    assert done.returncode == 0 and "was failed" in done.stderr and "args" in done.stdout
    assert len(world.rows()) == 1


@pytest.mark.parametrize("again", [("run", "a=1"), ("retry", "timed")])
def test_another_try_has_todays_settings(world: World, again: tuple[str, ...]) -> None:
    said = "name: timed\ncommand: python train.py\nlimits: {time: TIME}\n"
    world.write("train.py", "import time\ntime.sleep(1.5)\n")
    world.write("hostler.yaml", said.replace("TIME", "0.3s"))
    assert "raise `limits.time`, then hostler retry" in world.cli("run", "a=1").stderr
    world.write("hostler.yaml", said.replace("TIME", "1h"))
    world.cli(*again)
    assert world.cli("wait", "timed").returncode == 0


def test_one_command_submitted_twice_at_once_is_one_run(world: World) -> None:
    world.write("train.py", COUNTS)
    pair = [world.spawn("run", "--name", "a", "train.py", "5") for _ in range(2)]
    assert [rest(child)[0] for child in pair] == [0, 0]
    assert [(row["name"], row["attempt"]) for row in world.rows()] == [("a", 1)]


def test_a_run_like_another_changes_what_is_said(world: World) -> None:
    world.write("train.py", PRINTS)
    world.ok("run", "--name", "a", "train.py", "--lr", "0.1", "--epochs", "3")
    assert world.ok("run", "--like", "a", "lr=0.01") == "args --lr 0.01 --epochs 3\n"
    world.write("hostler.yaml", "command: python train.py\n")
    assert world.ok("run", "--name", "b", "lr=0.1", "model.width=8") == "args --lr 0.1 --model.width 8\n"
    assert world.ok("run", "--like", "b", "model.width=9") == "args --lr 0.1 --model.width 9\n"


def test_a_detached_run_goes_on_by_itself(world: World) -> None:
    world.write("train.py", COUNTS)
    done = world.cli("run", "--name", "a", "--detach", "train.py", "5")
    assert done.returncode == 0 and done.stdout == "" and "hostler logs -f a" in done.stderr
    assert world.until("a", "done")


def test_the_projects_cache_is_where_its_runs_live(world: World) -> None:
    world.write("hostler.yaml", "cache: big disk")
    world.write("train.py", "import os\nprint(os.getcwd())\n")
    done = world.cli("run", "train.py")
    assert done.stdout.startswith(str(world.folder / "big disk"))


def test_a_dry_run_submits_nothing(world: World) -> None:
    world.write("train.py", PRINTS)
    assert "hostler.worker" in world.ok("run", "--dry-run", "train.py")
    assert world.sweeps() == []


def test_a_run_that_fits_nowhere_does_not_wait_for_ever(world: World) -> None:
    world.write("train.py", PRINTS)
    world.write("hostler.yaml", "resources: {cpus: 100000}")
    done = world.cli("run", "--name", "a", "train.py")
    assert done.returncode == 1 and "do not fit this machine" in done.stderr
    assert world.state("a") == "queued"


def test_a_lost_worker_of_a_followed_run_is_replaced(world: World) -> None:
    world.write("train.py", COUNTS)
    child = world.spawn("run", "--name", "a", "train.py", "1000")
    reading(child, "begins")
    record = next((world.folder.parent / "tmp").glob("hostler-*/fleets/here/*.json"))
    parent = int(record.stem)
    for pid in (parent, *proctable.below(proctable.table(), parent)):
        with suppress(ProcessLookupError):  # those below it go with it
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: world.rows("a")[0]["attempt"] == 2, "a second attempt")
    assert "its worker is lost" in reading(child, "lost")


def test_the_walk_leaves_the_keys_it_should(world: World) -> None:
    world.write("train.py", PRINTS)
    world.ok("run", "--name", "a", "train.py")
    [row] = world.rows("a")
    keys = {entry.key for entry in world.store.list("")}
    assert {layout.project(1), layout.spec("a", 1), layout.end("a", row["id"], 2)} <= keys
    assert not [key for key in keys if key.startswith(("probe/", "alive/"))]
