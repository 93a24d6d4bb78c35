"""Scripts that a person starts: killed, stopped, failed, started twice; real processes on a real folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import servers
from hostler.records.checkpoint import checkpoints
from hostler.records.run import control
from script_world import Scripts, line_of, until

COUNT = """
import argparse, os, sys, time
import hostler

class Counter:
    n = 0
    def state_dict(self): return {"n": self.n}
    def load_state_dict(self, state): self.n = state["n"]

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
pause = float(os.environ.get("PAUSE", "0"))
counter = Counter()
with hostler.start(args, name=os.environ.get("NAME"), resume=os.environ.get("RESUME", "auto"),
                   save_every="1 steps", tags=["by-hand"], notes="a note") as run:
    run.track(counter=counter)
    print("begins", run.id, run.resumed, flush=True)
    for step in run.steps(args.steps):
        counter.n += 1
        run.log(loss=counter.n, lr=run.params.lr)
        print("step", step, flush=True)
        time.sleep(pause)
        if os.environ.get("FAIL_AT") == str(step):
            raise RuntimeError("planned")
    run.finish(total=counter.n)
print("total", counter.n, flush=True)
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    made = Scripts(tmp_path)
    made.write(COUNT)
    return made


def test_script_by_hand_leaves_a_done_run_with_its_result(scripts: Scripts) -> None:
    done = scripts.run("--lr", "0.5")
    assert done.code == 0, done.err
    row = scripts.row()
    assert (row.state, row.params["lr"], row.tags) == ("done", 0.5, ("by-hand",))
    assert scripts.curve(row, "loss") == [(n, n + 1.0) for n in range(30)]
    end = scripts.state(row).end
    assert end is not None and end["result"] == {"total": 30}
    assert list((scripts.root / "cache" / "alone").iterdir()) == []


def test_a_finished_run_is_followed_by_a_new_one(scripts: Scripts) -> None:
    scripts.run()
    again = scripts.run()
    assert "False" in again.out and "step 0" in again.out
    assert [row.state for row in scripts.rows()] == ["done", "done"]


def test_a_killed_run_goes_on_and_says_so(scripts: Scripts) -> None:
    with scripts.running(PAUSE="0.05") as process:
        line_of(process, "step 10")
        scripts.kill(process)
    row = scripts.row()
    assert row.state == "running"
    done = scripts.run()
    assert done.code == 0, done.err
    assert "goes on from step" in done.err and "total 30" in done.out and "step 0\n" not in done.out
    row = scripts.row()
    assert (row.state, row.attempt) == ("done", 2)
    assert scripts.curve(row, "loss") == [(n, n + 1.0) for n in range(30)]


def test_points_of_a_killed_process_are_delivered_by_next_start(scripts: Scripts) -> None:
    scripts.env["HOSTLER_FLUSH"] = "1000"
    scripts.write(COUNT.replace('"1 steps"', '"1d"'))
    with scripts.running(PAUSE="0.02") as process:
        line_of(process, "step 12")
        scripts.kill(process)
    assert scripts.curve(scripts.row(), "loss") == []
    scripts.run(FAIL_AT="13")
    store, row = scripts.opened(), scripts.row()
    from hostler.records.series.metrics import FragmentCache

    first = [f for f in FragmentCache().update(store, row.id) if f.attempt == 1]
    steps = [p.step for f in first for p in f.points]
    assert steps == list(range(len(steps))) and len(steps) >= 13


def test_failed_run_keeps_its_traceback_and_continues_when_started_again(scripts: Scripts) -> None:
    failed = scripts.run(FAIL_AT="7", PAUSE="0.02")
    assert failed.code == 1 and "RuntimeError: planned" in failed.err
    row = scripts.row()
    assert row.state == "failed" and row.failure and row.failure["message"] == "RuntimeError: planned"
    assert "planned" in row.failure["traceback"]
    done = scripts.run()
    assert "step 7" in done.out and "step 0\n" not in done.out and "total 30" in done.out
    assert scripts.row().state == "done"


def test_other_parameters_are_another_run(scripts: Scripts) -> None:
    scripts.run("--lr", "1")
    scripts.run("--lr", "2")
    assert sorted(row.params["lr"] for row in scripts.rows()) == [1.0, 2.0]


def test_a_named_run_refuses_other_parameters(scripts: Scripts) -> None:
    scripts.run("--lr", "1", NAME="mine", FAIL_AT="3")
    refused = scripts.run("--lr", "2", NAME="mine")
    assert refused.code == 1 and "lr was 1.0, is 2.0" in refused.err and 'resume="never"' in refused.err
    assert scripts.row().state == "failed"
    fresh = scripts.run("--lr", "2", NAME="mine", RESUME="never")
    assert fresh.code == 0 and len(scripts.rows()) == 2


def test_must_resume_says_that_there_is_nothing(scripts: Scripts) -> None:
    refused = scripts.run(RESUME="must")
    assert refused.code == 1 and "train has no earlier run to resume" in refused.err
    assert scripts.rows() == []


def test_same_script_started_twice_at_once_makes_two_runs(scripts: Scripts) -> None:
    with scripts.running(PAUSE="0.05") as process:
        line_of(process, "step 3")
        second = scripts.run()
        assert second.code == 0 and "this script starts a second run" in second.err
        assert process.wait(60) == 0
    assert [row.state for row in scripts.rows()] == ["done", "done"]


def test_sigterm_saves_and_leaves_and_nothing_is_repeated(scripts: Scripts) -> None:
    with scripts.running(PAUSE="0.03") as process:
        line_of(process, "step 8")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 75 and "saved at step" in err
    assert scripts.row().state == "queued"
    done = scripts.run()
    steps = [line for line in ("step 8\n" + out + done.out).splitlines() if line.startswith("step")]
    assert steps == [f"step {n}" for n in range(8, 30)]


def test_ctrl_c_saves_and_leaves_with_130(scripts: Scripts) -> None:
    with scripts.running(PAUSE="0.03") as process:
        line_of(process, "step 4")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert scripts.row().state == "queued"


@pytest.mark.parametrize(("act", "state"), [(control.stop, "stopped"), (control.pause, "paused")])
def test_a_person_stops_a_run_by_hand_from_elsewhere(scripts: Scripts, act: object, state: str) -> None:
    with scripts.running("--steps", "1000", PAUSE="0.03") as process:
        line_of(process, "step 4")
        act(scripts.opened(), scripts.key())  # type: ignore[operator]
        process.communicate(timeout=60)
    assert process.returncode == 75 and scripts.row().state == state
    with scripts.running("--steps", "1000", PAUSE="0.03") as process:
        assert "True" in line_of(process, "begins")
        scripts.kill(process)


def test_run_that_a_person_killed_from_elsewhere_writes_no_more(scripts: Scripts) -> None:
    with scripts.running("--steps", "1000", PAUSE="0.03") as process:
        line_of(process, "step 4")
        control.kill(scripts.opened(), scripts.key())
        _, err = process.communicate(timeout=60)
    assert "taken over or stopped" in err
    assert scripts.row().state == "stopped"


def test_run_killed_between_finish_and_end_is_not_trained_again(scripts: Scripts) -> None:
    scripts.write(
        COUNT.replace(
            "run.finish(",
            "import hostler.sdk.alone.home as home\n"
            "    home.AloneHome.finish = lambda *_: os.kill(os.getpid(), 9)\n    run.finish(",
        )
    )
    killed = scripts.run()
    assert killed.code == -9 and scripts.row().state == "running"
    scripts.write(COUNT)
    done = scripts.run()
    assert done.code == 0 and "step" not in done.out.replace("steps", "") and "total 30" in done.out
    row = scripts.row()
    assert (row.state, row.attempt) == ("done", 2)
    assert scripts.curve(row, "loss") == [(n, n + 1.0) for n in range(30)]


def test_a_worker_leaves_runs_by_hand_alone(scripts: Scripts) -> None:
    with scripts.running(PAUSE="0.05") as process:
        line_of(process, "step 3")
        scripts.kill(process)
    import subprocess
    import sys

    store = str(scripts.project / ".hostler")
    command = [sys.executable, "-m", "hostler", "worker", store]
    worker = subprocess.run(command, env=scripts.variables(), capture_output=True, text=True, timeout=60)
    assert worker.returncode == 0, worker.stderr
    assert (scripts.row().counted, scripts.row().attempt) == ("lost", 1)


def test_process_end_ends_the_run_without_a_with_block(scripts: Scripts) -> None:
    scripts.write("import hostler\nrun = hostler.start({'a': 1})\nrun.log(loss=1)\n", "plain.py")
    assert scripts.run(name="plain.py").code == 0
    assert scripts.row().state == "done"


def test_without_a_with_block_an_error_fails_the_run(scripts: Scripts) -> None:
    scripts.write(
        "import hostler\nrun = hostler.start()\nrun.log(loss=1)\nraise ValueError('bad')\n", "plain.py"
    )
    assert scripts.run(name="plain.py").code == 1
    row = scripts.row()
    assert row.state == "failed" and row.failure and row.failure["message"] == "ValueError: bad"


def test_exit_code_fails_the_run_without_a_with_block(
    scripts: Scripts,
) -> None:
    scripts.write(
        "import hostler, sys\nrun = hostler.start()\nrun.log(step=7, loss=1)\nsys.exit('diverged')\n",
        "plain.py",
    )
    assert scripts.run(name="plain.py").code == 1
    row = scripts.row()
    assert row.state == "failed" and row.failure and row.failure["message"] == "SystemExit: diverged"
    assert row.step == 7 and row.metrics == {"loss": 1}


def test_forked_child_that_exits_normally_does_not_end_the_run(scripts: Scripts) -> None:
    scripts.write(
        "import hostler, os, sys\n"
        "run = hostler.start()\n"
        "if os.fork() == 0:\n    sys.exit(0)\n"
        "os.wait()\n"
        "from pathlib import Path\n"
        "print(list(Path('.hostler/sweeps').glob('*/ends/*')), flush=True)\n"
        "run.log(loss=1)\n",
        "plain.py",
    )
    done = scripts.run(name="plain.py")
    assert done.code == 0 and done.out.strip() == "[]", done.err
    assert scripts.curve(scripts.row(), "loss") == [(0, 1.0)]


def test_loader_workers_that_fork_do_not_touch_the_run(scripts: Scripts) -> None:
    servers.library("torch")
    scripts.write(
        "import hostler, torch\n"
        "from torch.utils.data import DataLoader\n"
        "with hostler.start() as run:\n"
        "    for epoch in run.epochs(2):\n"
        "        for batch in DataLoader(list(range(8)), num_workers=2, multiprocessing_context='fork'):\n"
        "            run.log(value=batch.sum())\n",
        "plain.py",
    )
    done = scripts.run(name="plain.py")
    assert done.code == 0, done.err
    assert scripts.row().state == "done" and len(scripts.curve(scripts.row(), "value")) == 16


def test_unusable_store_is_reported_and_the_training_goes_on(scripts: Scripts) -> None:
    blocked = scripts.root / "blocked"
    blocked.write_text("a file")
    scripts.store = str(blocked / "store")
    done = scripts.run()
    assert done.code == 0 and "total 30" in done.out
    assert "the store cannot be used" in done.err and "instead" in done.err


def test_store_that_vanishes_is_reported_once_and_gets_points_later(scripts: Scripts) -> None:
    hidden = scripts.root / "hidden"
    store = scripts.project / ".hostler"
    with scripts.running("--steps", "60", PAUSE="0.05") as process:
        line_of(process, "step 5")
        process.send_signal(signal.SIGSTOP)  # else it may make the folder anew between the two
        store.rename(hidden)
        store.write_text("in the way")
        process.send_signal(signal.SIGCONT)
        line_of(process, "step 30")
        store.unlink()
        hidden.rename(store)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert 1 <= err.count("delivery is retried") <= 4
    row = scripts.row()
    assert row.state == "done" and scripts.curve(row, "loss") == [(n, n + 1.0) for n in range(60)]


def test_a_script_of_its_own_files_finds_them_again(scripts: Scripts) -> None:
    scripts.write(
        "import hostler, sys\n"
        "with hostler.start() as run:\n"
        "    last = run.checkpoint_dir / 'last.txt'\n"
        "    n = int(last.read_text()) if last.exists() else 0\n"
        "    print('found', n)\n"
        "    last.write_text(str(n + 1))\n"
        "    if n < 2:\n        raise SystemExit(3)\n",
        "own.py",
    )
    assert [scripts.run(name="own.py").out.strip() for _ in range(3)] == ["found 0", "found 1", "found 2"]
    assert scripts.row().state == "done"


def test_run_continues_on_another_machine_once_its_heartbeat_stands_still(scripts: Scripts) -> None:
    with scripts.running(PAUSE="0.05") as process:
        line_of(process, "step 6")
        until(lambda: checkpoints.committed(scripts.opened(), scripts.row().id))
        scripts.kill(process)
    scripts.cache, scripts.host = "other-cache", "other-host"
    done = scripts.run()
    assert done.code == 0, done.err
    assert "checking whether that process is alive" in done.err and "goes on from step" in done.err
    row = scripts.row()
    assert (row.state, row.host, row.attempt) == ("done", "other-host", 2)
    assert scripts.curve(row, "loss") == [(n, n + 1.0) for n in range(30)]


def test_run_that_is_alive_on_another_machine_is_left_alone(scripts: Scripts) -> None:
    with scripts.running("--steps", "200", PAUSE="0.05") as process:
        line_of(process, "step 3")
        other = Scripts(scripts.root, cache="other-cache", host="other-host")
        done = other.run("--steps", "200")
        assert done.code == 0 and "this script starts a second run" in done.err
        assert process.poll() is None
        scripts.kill(process)


def test_ranks_of_one_run_by_hand_log_and_save_together(scripts: Scripts) -> None:
    scripts.write(
        COUNT.replace(
            "run.log(loss=counter.n, lr=run.params.lr)", 'run.log({f"loss{run.rank}": counter.n})'
        ).replace('save_every="1 steps"', 'save_every="3 steps"')
    )
    ranks = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1234"}
    with (
        scripts.running(RANK="0", PAUSE="0.05", **ranks) as one,
        scripts.running(RANK="1", PAUSE="0.05", **ranks) as two,
    ):
        line_of(one, "step 20")
        scripts.kill(two)
        scripts.kill(one)
    with scripts.running(RANK="1", **ranks) as two:
        done = scripts.run(RANK="0", **ranks)
        out, err = two.communicate(timeout=60)
    assert done.code == two.returncode == 0, done.err + err
    assert "total 30" in done.out and "total 30" in out and "step 0\n" not in out + done.out
    row = scripts.row()
    assert (row.state, row.attempt) == ("done", 2)
    for name in ("loss0", "loss1"):
        assert sorted(scripts.curve(row, name)) == [(n, n + 1.0) for n in range(30)]


def test_rank_0_alone_goes_on_where_only_it_uses_hostler(scripts: Scripts) -> None:
    scripts.write("import hostler.sdk.ranks.ranks\nhostler.sdk.ranks.ranks.JOIN = 0.3\n" + COUNT)
    done = scripts.run(RANK="0", WORLD_SIZE="4")
    assert done.code == 0 and "only rank 0 of 4 called hostler.start()" in done.err
    assert scripts.row().state == "done"


def test_strange_places_are_no_trouble(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path / "a b'c\"d; echo x\n")
    scripts.write(COUNT, "my script; $x.py")
    done = scripts.run(name="my script; $x.py")
    assert done.code == 0, done.err
    assert scripts.row().state == "done"


def test_finished_run_leaves_no_thread_or_file_in_the_process(scripts: Scripts) -> None:
    scripts.write(
        "import hostler, os, threading\n"
        "def handles(): return len(os.listdir('/proc/self/fd'))\n"
        "with hostler.start({'n': 0}) as run: run.log(a=1)\n"
        "before = handles(), threading.active_count()\n"
        "for n in range(1, 6):\n"
        "    with hostler.start({'n': n}) as run:\n"
        "        for _ in run.steps(3): run.log(a=1)\n"
        "print(before == (handles(), threading.active_count()))\n",
        "many.py",
    )
    done = scripts.run(name="many.py")
    assert done.out.strip() == "True", done.err
    assert len(scripts.rows()) == 6
    assert os.listdir(scripts.root / "cache" / "alone") == []
