"""Real processes, each ending in its own way, through a real worker: kind, tries, state, message."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

import servers
from hostler.records.checkpoint import checkpoints
from hostler.records.run import control, heartbeats
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunLog
from hostler.spec.job import Limits, PythonEnv, Resources
from worker_world import World, until

SAVE = """
import os, pathlib, time
def write(text):
    place = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "ckpt")
    place.with_suffix(".new").write_text(text)
    place.with_suffix(".new").rename(place)
def commits():
    run = pathlib.Path(os.environ["MARKS"]).with_name("store") / "runs" / os.environ["HOSTLER_RUN"]
    return {path.parent.name for path in run.glob("checkpoints/*/COMMIT")}
def save(text):
    before, deadline = commits(), time.monotonic() + 60
    write(text)
    while commits() <= before:  # in the store, so that it counts though the script fails
        assert time.monotonic() < deadline, "never saved"
        time.sleep(0.02)
"""
FIRST = "int(os.environ['HOSTLER_ATTEMPT']) == 1"


@dataclass(frozen=True)
class Ending:
    script: str
    kind: str  # '' if there is no failure
    tries: int
    says: str = ""  # in the failure's message
    state: str = "failed"
    settings: dict[str, Any] = field(default_factory=dict)


TABLE = {
    "done": Ending("print('ok')", "", 1, state="done"),
    "same-error-twice": Ending(
        "raise ValueError('bad lr 0.1')",
        "error",
        2,
        "ValueError: bad lr 0.1 (train.py:1, the same error twice before any progress)",
    ),
    "same-error-retries-given": Ending(
        "raise ValueError('bad')",
        "error",
        3,
        "ValueError: bad (train.py:1, failed 3 times",
        settings={"retries": 2, "retries_given": True},
    ),
    "type-error": Ending(
        "x = 1\nlen(x)", "error", 1, "TypeError: object of type 'int' has no len() (train.py:2)"
    ),
    "type-error-after-a-point": Ending(
        'print(\'{"loss": 1, "step": 1}\', flush=True)\nlen(1)', "error", 3, "(train.py:2, failed 3 times"
    ),
    "type-error-after-a-checkpoint": Ending(
        SAVE + "save(os.environ['HOSTLER_ATTEMPT'])\nlen(1)", "error", 5, "the same error 5 times in a row"
    ),
    "type-error-in-an-attempt-after-a-kill": Ending(
        f"import os\nif {FIRST}: os.kill(os.getpid(), 9)\nlen(1)", "error", 4, "failed 3 times"
    ),
    "file-that-is-late": Ending("open('nosuch.csv')", "error", 3, "FileNotFoundError"),
    "network": Ending("raise ConnectionError('refused')", "error", 3, "ConnectionError: refused"),
    "no-retries": Ending("raise ValueError('x')", "error", 1, "no retries", settings={"retries": 0}),
    "exit-3": Ending("import sys; print('giving up'); sys.exit(3)", "exit-code", 3, "exit code 3: giving up"),
    "exit-75": Ending("import sys; sys.exit(75)", "tempfail", 4, "exited 4 times with code 75"),
    "exit-75-with-progress": Ending(
        SAVE + "n = int(os.environ['HOSTLER_ATTEMPT']); write(str(n)); raise SystemExit(75 if n < 13 else 0)",
        "tempfail",
        7,
        state="done",
    ),
    "progress-resets-retries": Ending(
        SAVE + "n = int(os.environ['HOSTLER_ATTEMPT']); n in (1, 5) and save(str(n)); n < 9 and 1 / 0",
        "error",
        5,
        state="done",
        settings={"retries": 1, "limits": Limits(failures=50)},
    ),
    "same-error-though-it-saves": Ending(
        SAVE + "save(os.environ['HOSTLER_ATTEMPT']); raise ValueError('x')",
        "error",
        5,
        "the same error 5 times in a row",
    ),
    "segfault": Ending("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crash", 3, "SIGSEGV"),
    "abort": Ending("import os; os.abort()", "crash", 3, "SIGABRT"),
    "stranger": Ending("import os; os.kill(os.getpid(), 9)", "killed", 6, "lost 6 times"),
    "cuda-memory": Ending(
        "class OutOfMemoryError(RuntimeError): pass\nraise OutOfMemoryError('CUDA out of memory. Tried 2')",
        "cuda-memory",
        3,
        "CUDA out of memory",
    ),
    "disk-full": Ending("raise OSError(28, 'No space left on device')", "disk-full", 3, "No space left"),
    "import-error": Ending(
        "import nosuchmodule", "import-error", 1, "No module named 'nosuchmodule' (train.py:1)"
    ),
    "syntax": Ending("def f(:\n  pass", "syntax", 1, "SyntaxError"),
    "usage": Ending(
        "import argparse; argparse.ArgumentParser().parse_args(['--foo'])",
        "usage",
        1,
        "unrecognized arguments",
    ),
    "hang": Ending(
        'import time; print(\'{"loss": 1, "step": 1}\', flush=True); time.sleep(60)',
        "hang",
        2,
        "limits.hang",
        settings={"limits": Limits(hang=0.4, start=30), "retries": 1},
    ),
    "slow-start": Ending(
        "import time; time.sleep(60)",
        "slow-start",
        1,
        "limits.start",
        settings={"limits": Limits(hang=0.4, start=0.4), "retries": 0},
    ),
    "slow-but-right": Ending(
        "import time; time.sleep(1.2); print('step')",
        "",
        1,
        state="done",
        settings={"limits": Limits(hang=0.3, start=30)},
    ),
    "time-limit": Ending(
        "import time; time.sleep(60)", "time-limit", 1, "limits.time", settings={"limits": Limits(time=0.5)}
    ),
    "memory-limit": Ending(
        "import time; x = b'x' * 300_000_000; time.sleep(60)",
        "memory",
        1,
        "resources.memory",
        settings={"resources": Resources(memory=100_000_000), "retries": 0},
    ),
    "not-found": Ending(
        "", "not-found", 1, "command not found: nosuchcommand", settings={"command": ("nosuchcommand", "x")}
    ),
    "setup-fails": Ending(
        "",
        "prepare",
        3,
        "no compiler here",
        settings={"setup": ("bash", "-c", "echo no compiler here; exit 4")},
    ),
    "wrong-folder": Ending("", "prepare", 1, "not in the code", settings={"cwd": "none", "retries": 0}),
    "zero-byte": Ending(
        "", "prepare", 1, "zero byte", settings={"command": ("echo", "a\0b"), "retries": 0, "style": "none"}
    ),
    "no-such-machine": Ending(
        "",
        "machine",
        1,
        "conda was not found on this machine",
        settings={"python": "conda"},  # replaced below
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_each_end_has_its_kind_its_tries_and_its_state(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = TABLE[name]
    given = dict(row.settings)
    if given.get("python") == "conda":
        given["python"] = no_conda(world, monkeypatch)
    job = world.submit(row.script, **given)
    assert world.work() == 0
    state = world.state(job)
    failure = (state.end or {}).get("failure") or state.failure or {}
    found = (state.state, failure.get("kind", ""), state.attempts)
    assert found == (row.state, row.kind, row.tries), (world.entries(job), world.log(job), world.said)
    assert row.says in failure.get("message", "")
    if row.state == "failed":
        assert failure["advice"] and state.end and state.end["attempts"] == row.tries
    assert not (world.cache / "runs").exists() or not list((world.cache / "runs").glob("*/*"))


def test_tracebacks_name_the_users_files_in_failure_and_log(world: World) -> None:
    world.file("src/model.py", "def build():\n    return len(1)\n")
    job = world.submit("import sys\nsys.path.insert(0, 'src')\nimport model\nmodel.build()\n")
    world.work()
    failure = world.ended(job)["failure"]
    assert failure["message"] == "TypeError: object of type 'int' has no len() (src/model.py:2)"
    frames = [line.strip() for line in failure["traceback"].splitlines() if "File" in line]
    assert frames == ['File "train.py", line 4, in <module>', 'File "src/model.py", line 2, in build']
    assert all(frame in world.log(job) for frame in frames) and "/runs/" not in world.log(job)


def test_box_of_rich_is_left_out_and_paths_are_the_users(world: World) -> None:
    servers.library("rich")
    job = world.submit(
        "from rich.traceback import install\ninstall(show_locals=True)\ndef f(x):\n  len(x)\nf(1)\n"
    )
    world.work()
    failure = world.ended(job)["failure"]
    assert failure["message"] == "TypeError: object of type 'int' has no len() (train.py:4)"
    assert 'File "train.py", line 5, in <module>' in failure["traceback"] and world.state(job).attempts == 1


def test_killed_run_does_not_quote_an_ordinary_line(world: World) -> None:
    script = "import os; print('epoch 2 train_loss 1.08', flush=True); os.kill(os.getpid(), 9)"
    job = world.submit(script)
    world.work()
    assert world.ended(job)["failure"]["message"].startswith("killed by SIGKILL (")


def no_conda(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    world.file("environment.yml", "dependencies: []\n")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("HOME", str(world.root))
    for name in ("CONDA_EXE", "MAMBA_EXE"):
        monkeypatch.delenv(name, raising=False)
    return PythonEnv(conda="environment.yml")


def test_the_time_limit_counts_all_attempts(world: World) -> None:
    script = f"import os, sys, time; time.sleep(0.7 if {FIRST} else 60); sys.exit(75)"
    job = world.submit(script, limits=Limits(time=4.0))
    world.work()
    state = world.state(job)
    assert state.failure and state.failure["kind"] == "time-limit" and state.attempts == 2
    assert state.end and state.end["total"] >= 4.0 and state.end["total"] - state.end["seconds"] >= 0.7


def test_nothing_starts_once_the_time_is_spent(world: World) -> None:
    """A preempted attempt has spent it, and the run was given back all the same."""
    job = world.submit("open(__import__('os').environ['MARKS'] + '/begun', 'w')", limits=Limits(time=4.0))
    log = RunLog(world.store, world.key(job)).read_on()
    held = claim(world.store, log, 60.0, time.monotonic, Claim("earlier"))
    assert held is not None
    held.release("queued", why="preempted", seconds=4.5, progress=True)
    world.work()
    failure = world.ended(job)["failure"]
    assert failure["kind"] == "time-limit" and not world.mark("begun").exists()
    assert failure["message"] == "not started: its attempts have spent limits.time"


LOOP = (
    SAVE
    + """
import signal, sys, time
def leave(*_):
    write("left"); sys.exit(0)
signal.signal(signal.SIGTERM, leave)
start = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "ckpt").exists()
pathlib.Path(os.environ["MARKS"], "again" if start else "up").write_text(str(os.getpid()))
while not start: time.sleep(0.02)
"""
)


@pytest.mark.parametrize(
    ("ask", "then"), [(control.stop, "stopped"), (control.pause, "paused")], ids=["stop", "pause"]
)
def test_exit_0_after_a_stop_request_is_resumable_not_done(world: World, ask: Any, then: str) -> None:
    job = world.submit(LOOP)
    with world.working():
        until(world.mark("up").exists)
        ask(world.store, world.key(job))
        until(lambda: world.state(job).state == then)
    assert world.ended(job)["exit"] == 0 and world.ended(job)["progress"]
    control.resume(world.store, world.key(job))
    world.work()
    assert world.state(job).state == "done" and world.mark("again").exists()
    assert "goes on from checkpoint" in world.log(job)


def test_preempted_worker_gives_the_run_back_uncounted(world: World) -> None:
    job = world.submit(LOOP, retries=0)
    with world.working() as worker:
        until(world.mark("up").exists)
        worker.tell("preempted")
        until(lambda: world.state(job).state == "queued")
    entry, state = world.ended(job), world.state(job)
    assert (entry["kind"], entry["why"], entry["then"]) == ("release", "preempted", "queued")
    assert (state.tally.failures, state.tally.lost) == (0, 0)
    world.work()
    assert world.state(job).state == "done"


def test_a_script_that_ignores_sigterm_is_killed_after_the_grace(world: World) -> None:
    world.quick(grace=0.5)
    script = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(os.environ["MARKS"], "termed").write_text("x"))
pathlib.Path(os.environ["MARKS"], "up").write_text(str(os.getpid()))
while True: time.sleep(0.02)
"""
    job = world.submit(script)
    with world.working():
        until(world.mark("up").exists)
        control.stop(world.store, world.key(job))
        until(lambda: world.state(job).state == "stopped")
    assert world.mark("termed").exists() and world.ended(job)["exit"] == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(int(world.mark("up").read_text()), 0)


def test_joined_process_reads_the_stop_file_and_gets_no_signal(world: World) -> None:
    script = """
import json, os, pathlib, signal, sys, time
here, marks = pathlib.Path(os.environ["HOSTLER_DIR"]), pathlib.Path(os.environ["MARKS"])
signal.signal(signal.SIGTERM, lambda *_: (marks / "termed").write_text("x"))
(here / "joined.json").write_text("{}")
(marks / "up").write_text("x")
while not (here / "stop.json").exists(): time.sleep(0.02)
(marks / "reason").write_text(json.loads((here / "stop.json").read_text())["reason"])
time.sleep(0.2)
"""
    job = world.submit(script)
    with world.working():
        until(world.mark("up").exists)
        control.stop(world.store, world.key(job))
        until(lambda: world.state(job).state == "stopped")
    assert world.mark("reason").read_text() == "person" and not world.mark("termed").exists()


def test_finish_after_a_stop_request_is_done(world: World) -> None:
    script = """
import os, pathlib, time
here = pathlib.Path(os.environ["HOSTLER_DIR"])
(here / "joined.json").write_text("{}")
pathlib.Path(os.environ["MARKS"], "up").write_text("x")
while not (here / "stop.json").exists(): time.sleep(0.02)
(here / "finished.json").write_text('{"best": 3}')
"""
    job = world.submit(script)
    with world.working():
        until(world.mark("up").exists)
        control.stop(world.store, world.key(job))
        until(lambda: world.state(job).ended)
    assert world.state(job).state == "done" and world.ended(job)["result"] == {"best": 3}


class DiesAtTheEnd:
    """A store through which one attempt cannot write its end: as if the worker died right before it."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if "/log/" in key and b'"kind":"end"' in data:
            raise KeyboardInterrupt
        return bool(self._store.put(key, data, if_absent=if_absent))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_finished_run_without_an_end_record_is_ended_not_rerun(
    world: World,
) -> None:
    script = (
        SAVE
        + """
with open(os.environ["MARKS"] + "/runs", "a") as f: f.write("x")
print('{"loss": 0.5, "step": 7}')
"""
        + "save('weights')"
    )
    job = world.submit(script)
    assert world.work(store=DiesAtTheEnd(world.store), runs=1) == 0
    assert not world.state(job).ended
    assert checkpoints.read(world.store, job.run_id(0), world.committed(job)[0]).finished
    world.work()
    state = world.state(job)
    assert state.state == "done" and world.mark("runs").read_text() == "x"
    assert state.end and state.end["metrics"]["loss"]["last"] == 0.5 and state.end["attempts"] == 2
    assert world.row(job).metrics["loss"] == 0.5


def test_unsuitable_machine_leaves_the_run_to_others_and_refuses(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.submit("", python=no_conda(world, monkeypatch))
    heartbeats.beat(world.store, "another", 1, {})
    assert world.work() == 1
    state = world.state(job)
    assert state.state == "queued" and state.tally.lost == 1
    assert state.failure and state.failure["kind"] == "machine"


def test_a_stop_that_comes_during_preparation_starts_no_process(world: World) -> None:
    job = world.submit(
        "import os, pathlib; pathlib.Path(os.environ['MARKS'], 'ran').write_text('x')",
        setup=("bash", "-c", "touch $MARKS/setup; while [ ! -e $MARKS/go ]; do sleep 0.05; done"),
    )
    with world.working():
        until(world.mark("setup").exists)
        control.stop(world.store, world.key(job))
        until(lambda: world.state(job).stop == "person")
        time.sleep(0.5)  # some beats: the worker has read it
        world.mark("go").touch()
        until(lambda: world.state(job).state == "stopped")
    assert not world.mark("ran").exists()
