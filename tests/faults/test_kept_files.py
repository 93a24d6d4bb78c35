"""Files that scripts write where they work: kept by default, over attempts, and never lost without a word."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostler.records.checkpoint import outputs
from hostler.records.run import control, history, run_details
from hostler.records.sweep import sweeps
from hostler.spec.job import Checkpointing, DataItem, Job, Source
from worker_world import World, until

HEAD = """
import os, pathlib, sys, time
from pathlib import Path
attempt, ckpt = int(os.environ["HOSTLER_ATTEMPT"]), Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
marks = Path(os.environ["MARKS"])
def put(name, text):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def pulled(world: World, job: Job, index: int = 0) -> dict[str, str]:
    """What `pull` would bring: name and text of each file."""
    found = outputs.newest(world.store, job.run_id(index))
    if found is None:
        return {}
    to = world.root / "pulled" / job.run_id(index) / str(found[0])
    outputs.fetch(world.store, job.run_id(index), found[1], to)
    return {str(path.relative_to(to)): path.read_text() for path in to.rglob("*") if path.is_file()}


def test_new_and_changed_files_of_a_done_run_are_kept(world: World) -> None:
    world.file("table.csv", "a\n")
    world.file("same.txt", "same")
    world.file(".gitignore", "*.pt\nlightning_logs/\n")
    job = world.submit(
        HEAD
        + """
put("checkpoints/model.pt", "weights"); put("lightning_logs/version_0/m.csv", "1")
put("__pycache__/x.pyc", "no"); open("table.csv", "a").write("b")
Path("checkpoints/last.pt").symlink_to("model.pt")
"""
    )
    world.work()
    assert pulled(world, job) == {
        "checkpoints/model.pt": "weights",
        "checkpoints/last.pt": "weights",
        "lightning_logs/version_0/m.csv": "1",
        "table.csv": "a\nb",
    }
    assert world.ended(job)["outputs"] == {"files": 4, "size": 7 + 7 + 1 + 3}
    assert not list((world.cache / "code").rglob("model.pt")), "the shared code is as it was"
    assert (next((world.cache / "code").rglob("table.csv"))).read_text() == "a\n"


def test_a_run_that_writes_nothing_leaves_no_outputs(world: World) -> None:
    job = world.submit("import json, sys")
    world.work()
    assert pulled(world, job) == {} and "outputs" not in world.ended(job)


def test_outputs_none_turns_collecting_off(world: World) -> None:
    job = world.submit(HEAD + "put('model.pt', 'w')", collect=False)
    world.work()
    assert world.state(job).state == "done" and pulled(world, job) == {}


def test_over_the_limit_the_end_says_what_and_how(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_OUTPUTS_MAX", "1000")
    script = (
        HEAD
        + """
for n in "abc": put(f"checkpoints/{n}.pt", "x" * 900)
put("log.txt", "small"); put("named/large.bin", "y" * 2000)
Path(os.environ["HOSTLER_OUTPUT_DIR"], "table").write_text("z" * 2000)
"""
    )
    job = world.submit(script, outputs=("named/",))
    world.work()
    line = (
        "not kept: checkpoints/ (3 files, 2.7 KB) is over the limit of 1 KB; "
        "add  outputs: [checkpoints/]  or  outputs: none  to hostler.yaml"
    )
    assert sorted(pulled(world, job)) == ["log.txt", "named/large.bin", "table"]
    assert f"[hostler] {line}" in world.log(job) and world.ended(job)["outputs"]["unkept"] == [line]
    assert run_details.read(world.store, world.key(job)).unkept == [line]


def test_by_default_a_run_keeps_a_gigabyte(world: World) -> None:
    """The large one has no bytes on the disk, and nobody reads or sends it."""
    script = HEAD + "put('log.txt', 'small'); put('model.pt', ''); os.truncate('model.pt', 1_000_000_000)"
    job = world.submit(script)
    world.work()
    line = "not kept: model.pt (1 file, 1 GB) is over the limit of 1 GB"
    assert pulled(world, job) == {"log.txt": "small"}
    assert line in world.log(job)


ENDS = {
    "failed": "raise ValueError('no')",
    "crash": "os.kill(os.getpid(), 11)",
    "killed": "os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_failed_run_keeps_what_its_folder_held(world: World, how: str) -> None:
    job = world.submit(HEAD + f"put('model.pt', 'w'); {ENDS[how]}", retries=0)
    world.work(runs=1)
    assert world.state(job).state in ("failed", "queued") and pulled(world, job) == {"model.pt": "w"}


@pytest.mark.parametrize("how", ["stopped", "paused"])
def test_a_stopped_or_paused_run_keeps_its_files(world: World, how: str) -> None:
    job = world.submit(HEAD + "put('model.pt', 'w'); (marks / 'on').touch(); time.sleep(60)")
    with world.working():
        until(world.mark("on").exists)
        (control.stop if how == "stopped" else control.pause)(world.store, world.key(job))
        until(lambda: world.state(job).state == how)
    assert pulled(world, job) == {"model.pt": "w"}


GOES_ON = (
    HEAD
    + """
(ckpt / "n").write_text(str(attempt))
put(f"only-{attempt}.txt", str(attempt)); put("both.txt", str(attempt)); put("equal.txt", "equal")
put("turns", "a file") if attempt == 1 else put("turns/into", "a folder")
sys.exit(75 if attempt < 5 else 0)
"""
)


def test_an_attempt_that_went_on_adds_to_earlier_files(world: World) -> None:
    job = world.submit(GOES_ON)
    world.work()
    assert world.state(job).state == "done"
    last = world.state(job).attempt
    found = pulled(world, job)
    assert found["both.txt"] == str(last) and found["equal.txt"] == "equal"
    assert found["only-1.txt"] == "1" and found["turns/into"] == "a folder" and "turns" not in found
    assert len([name for name in found if name.startswith("only-")]) == 3


def test_a_file_written_again_unchanged_is_not_uploaded_again(world: World) -> None:
    job = world.submit(GOES_ON)
    world.work()
    found = outputs.newest(world.store, job.run_id(0))
    assert found is not None
    brought = {row["name"]: row["attempt"] for row in found[1]}
    assert brought["equal.txt"] == 1 < brought["both.txt"] == found[0]


def test_an_attempt_that_began_from_nothing_stands_alone(world: World) -> None:
    job = world.submit(HEAD + "put(f'{attempt}.txt', 'x'); sys.exit(75 if attempt == 1 else 0)")
    world.work()
    state = world.state(job)
    assert state.attempts == 2 and list(pulled(world, job)) == [f"{state.attempt}.txt"]


def test_files_survive_an_attempt_whose_worker_died(world: World) -> None:
    """The second saves and is lost without a word; the third goes on from it, and so from the first."""
    script = (
        HEAD
        + """
n = int((ckpt / "n").read_text()) + 1 if (ckpt / "n").exists() else 1
(ckpt / "n").write_text(str(n)); put(f"{n}.txt", str(n))
if n == 1: sys.exit(75)
if n == 2:
    (marks / "on").touch()
    time.sleep(60)
"""
    )
    job = world.submit(script, checkpoint=Checkpointing(every=0.05))
    worker = world.worker()
    loop = threading.Thread(target=worker.run, daemon=True)
    loop.start()
    until(lambda: world.mark("on").exists() and len(world.committed(job)) >= 2)
    control.kill(world.store, world.key(job))  # its worker is fenced, and keeps nothing
    until(lambda: not loop.is_alive())
    control.resume(world.store, world.key(job))
    world.work()
    assert world.state(job).state == "done", world.log(job)
    assert sorted(pulled(world, job)) == ["1.txt", "3.txt"]


def test_the_limit_counts_files_of_all_attempts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_OUTPUTS_MAX", "1000")
    saves = "(ckpt / 'n').write_text('1'); put(f'{attempt}.bin', 'x' * 600)"
    job = world.submit(f"{HEAD}{saves}\nsys.exit(75 if attempt == 1 else 0)")
    world.work()
    assert list(pulled(world, job)) == ["1.bin"]
    assert "(1 file, 600 B) is over the limit of 1 KB" in world.log(job)


def test_equal_names_in_both_folders_are_both_kept(world: World) -> None:
    job = world.submit(HEAD + "put('model', 'work'); put(os.environ['HOSTLER_OUTPUT_DIR'] + '/model', 'out')")
    world.work()
    assert pulled(world, job) == {"model": "out", "work/model": "work"}


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_output_larger_than_the_store_takes_is_named(world: World) -> None:
    """The worker may write no file of more than a megabyte; its script raises the limit for itself."""
    script = (
        HEAD
        + """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
put("large.bin", "x" * 3_000_000); put("small.txt", "s")
"""
    )
    job = world.submit(script, outputs=("large.bin",))
    with files_up_to(1_000_000):
        world.work()
    assert world.state(job).state == "done" and pulled(world, job) == {"small.txt": "s"}
    assert "not kept: large.bin is larger than the store takes" in world.log(job)
    assert "use another store" in world.log(job)
    assert not list(Path(world.store.url).rglob(".tmp-*"))


def test_a_file_that_cannot_be_kept_hinders_no_other(world: World) -> None:
    script = HEAD + "deep = '/'.join('d' * 1 for _ in range(250)); put(deep + '/x', 'd'); put('y', 'y')"
    job = world.submit(script)
    world.work()
    assert world.state(job).state == "done" and pulled(world, job) == {"y": "y"}
    assert "not kept: d/d/" in world.log(job)


def test_data_lies_in_the_working_folder_and_beside_it(world: World) -> None:
    data = world.root / "shakespeare"
    (data / "deep").mkdir(parents=True)
    (data / "train.bin").write_text("tokens")
    (data / "prepare.py").write_text("same")
    world.file("data/shakespeare/prepare.py", "same")
    script = (
        HEAD
        + """
print(Path("data/shakespeare/train.bin").read_text(), Path("../data/train.bin").read_text())
put("data/shakespeare/meta.pkl", "made here")
"""
    )
    at = [DataItem("s", path=str(data), at="data/shakespeare"), DataItem("t", path=str(data), at="../data")]
    job = world.submit(script, data=tuple(at))
    world.work()
    assert world.state(job).state == "done" and "tokens tokens" in world.log(job)
    assert pulled(world, job) == {"data/shakespeare/meta.pkl": "made here"}
    assert sorted(os.listdir(data)) == ["deep", "prepare.py", "train.bin"]


@pytest.mark.parametrize("at", ["../../x", "/x", "..", "../work", "a/../../.."])
def test_data_outside_the_runs_folder_is_refused_by_the_worker(world: World, at: str) -> None:
    job = world.submit("", data=(DataItem("s", path=str(world.root / "project"), at=at),), retries=0)
    world.work()
    failure = world.state(job).failure
    assert failure and failure["kind"] == "prepare" and "data 's': at:" in failure["message"]


def test_data_through_a_link_of_the_code_is_refused(world: World) -> None:
    """A commit may hold a link to anywhere; a snapshot may not."""
    repository, outside = world.root / "repository", world.root / "outside"
    repository.mkdir()
    outside.mkdir()
    (repository / "data").symlink_to(outside)
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    item = DataItem("s", path=str(world.root / "project"), at="data/x")
    source = Source(git=str(repository), ref=commit.strip())
    job = Job("git", (sys.executable, "-c", "1"), data=(item,), retries=0, source=source)
    assert sweeps.submit(world.store, job)
    world.work()
    failure = world.state(job).failure
    assert failure and "leads out of the run's folder" in failure["message"], world.log(job)
    assert os.listdir(outside) == []


def test_data_that_would_hide_code_fails_before_the_script(world: World) -> None:
    data = world.root / "d"
    data.mkdir()
    (data / "a.py").write_text("other")
    world.file("lib/a.py", "code")
    job = world.submit("raise SystemExit(3)", data=(DataItem("s", path=str(data), at="lib"),), retries=0)
    world.work()
    failure = world.state(job).failure
    assert failure and "at: lib is taken: the code has lib/a.py" in failure["message"]


def test_history_of_a_log_without_outputs_has_nothing_unkept() -> None:
    assert history.unkept([{"kind": "end", "outputs": 3}, {"kind": "end", "outputs": {"unkept": "x"}}]) == []


APPENDS = """
import os, pathlib, signal, sys, time
attempt, ckpt = int(os.environ["HOSTLER_ATTEMPT"]), pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
first = not (ckpt / "last").exists()
with open("log.csv", "a") as file: file.write("epoch,loss\\n" if file.tell() == 0 else "")
for epoch in range(0, 3) if first else range(2, 4):
    with open("log.csv", "a") as file: file.write(f"{epoch},0.5\\n")
with open("table.csv", "a") as file: file.write(f"{attempt}\\n")
os.mkdir("logs")
(pathlib.Path("logs") / "events.log").write_text(str(attempt))
if first:
    (ckpt / "last").write_text("epoch 1")
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_file_that_a_script_appends_to_is_whole_when_resumed(world: World) -> None:
    """Rows after the checkpoint are there twice, as after a rerun by hand. A file of the code begins anew,
    and a folder that the script makes is not there before it."""
    world.file("table.csv", "of the code\n")
    job = world.submit(APPENDS, retries=0, checkpoint=Checkpointing(every=0.1))
    world.work()
    assert world.state(job).state == "done", world.log(job)
    second = str(world.state(job).attempt)
    assert pulled(world, job) == {
        "log.csv": "epoch,loss\n0,0.5\n1,0.5\n2,0.5\n2,0.5\n3,0.5\n",
        "table.csv": f"of the code\n{second}\n",
        "logs/events.log": second,
    }
    assert "put back into the working folder: log.csv" in world.log(job)


def test_attempt_that_begins_anew_gets_no_files_back(world: World) -> None:
    job = world.submit(
        HEAD + "open('log.csv', 'a').write(f'{attempt}\\n')\nattempt == 1 and os.kill(os.getpid(), 9)"
    )
    world.work()
    assert pulled(world, job) == {"log.csv": f"{world.state(job).attempt}\n"}


def test_checkpoints_in_the_working_folder_are_named_at_resume(world: World) -> None:
    job = world.submit(
        HEAD + "put('checkpoints/model.pt', 'w'); time.sleep(0.2)\nattempt == 1 and os.kill(os.getpid(), 9)"
    )
    world.work()
    told = [line for line in world.log(job).splitlines() if "starts from the beginning" in line]
    assert len(told) == 1 and "checkpoints/model.pt is a file of the working folder" in told[0]
    assert "write checkpoints to $HOSTLER_CHECKPOINT_DIR" in told[0]
