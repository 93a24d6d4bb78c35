"""A script by hand, killed right after its last `log`: each reader on its machine shows all it logged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostler.records.checkpoint import checkpoints, outputs
from hostler.records.series.metrics import FragmentCache
from script_world import Done, Scripts, line_of, until

COUNT, MANY = 2_000, 20_000
LOGS = """
import hostler, os, signal
run = hostler.start({"lr": 0.1})
(run.output_dir / "table.csv").write_text("a,b")
for n in range(COUNT):
    run.log(loss=1.0 / (n + 1))
os.kill(os.getpid(), signal.SIGKILL)
"""
TRAINS = """
import hostler, os, time
class Counter:
    n = 0
    def state_dict(self): return {"n": self.n}
    def load_state_dict(self, state): self.n = state["n"]
counter = Counter()
with hostler.start({"lr": 0.1}, save_every="1 steps") as run:
    run.track(counter=counter)
    for step in run.steps(30):
        counter.n += 1
        run.log(loss=counter.n)
        print("step", step, flush=True)
        time.sleep(float(os.environ.get("PAUSE", "0")))
    run.finish(total=counter.n)
"""
POINTS = "import hostler; print(len(hostler.curves()))"
ROWS = "import hostler; print(len(hostler.frame()['loss.curve'][0]))"
DASHBOARD = """
import time
from hostler.analysis.board.watcher import Watcher
from hostler.store import open_store
watcher = Watcher(open_store(".hostler"), near=True)
watcher.start()
assert watcher.ready.wait(300)
watcher.stop()
[row] = [row for one in watcher.live.sweeps.values() for row in one.rows.values()]
print(row.counted, row.step)
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    made = Scripts(tmp_path)
    made.write(LOGS.replace("COUNT", str(COUNT)))
    made.env["HOSTLER_FLUSH"] = "1000"
    return made


def begin(scripts: Scripts, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=scripts.project,
        env=scripts.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read(scripts: Scripts, *words: str) -> Done:
    process = begin(scripts, *words)
    out, err = process.communicate(timeout=600)
    return Done(process.returncode, out, err)


def hostler(scripts: Scripts, *words: str) -> Done:
    return read(scripts, "-m", "hostler", *words)


def die(scripts: Scripts) -> None:
    assert scripts.run().code == -9
    assert scripts.curve(scripts.row(), "loss") == [], "no point has arrived"


# reader → its words after `python`, and what it prints of `last` and `count` points.
READERS = {
    "status": (("-m", "hostler", "status"), "{last}"),
    "show": (("-m", "hostler", "show", "train"), "{last}"),
    "df": (("-m", "hostler", "df"), "{loss}"),
    "worker": (("-m", "hostler", "worker", ".hostler"), ""),
    "curves": (("-c", POINTS), "{count}"),
    "frame": (("-c", ROWS), "{count}"),
    "dashboard": (("-c", DASHBOARD), "lost {last}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_reader_delivers_every_point_of_a_killed_script(scripts: Scripts, reader: str) -> None:
    check_delivers(scripts, reader, COUNT)


@pytest.mark.soak
@pytest.mark.parametrize("reader", READERS)
def test_reader_delivers_twenty_thousand_points(scripts: Scripts, reader: str) -> None:
    scripts.write(LOGS.replace("COUNT", str(MANY)))
    check_delivers(scripts, reader, MANY)


def check_delivers(scripts: Scripts, reader: str, count: int) -> None:
    die(scripts)
    words, shown = READERS[reader]
    done = read(scripts, *words)
    assert done.code == 0 and shown.format(last=count - 1, count=count, loss=1 / count) in done.out, done
    row = scripts.row()
    assert scripts.curve(row, "loss") == [(n, 1.0 / (n + 1)) for n in range(count)]
    fragments = FragmentCache().update(scripts.opened(), row.id)
    assert sum(len(fragment.points) for fragment in fragments) == count, "nothing is doubled"
    kept = outputs.newest(scripts.opened(), row.id)
    assert kept is not None and [file["name"] for file in kept[1]] == ["table.csv"]
    assert os.listdir(scripts.root / "cache" / "alone") == []


def test_status_counts_a_killed_script_as_lost_and_says_why(scripts: Scripts) -> None:
    die(scripts)
    first, second = hostler(scripts, "status"), hostler(scripts, "status")
    assert "its script died; what it left on this machine is being delivered" in first.err
    for done in (first, second):
        assert " lost " in done.out and "running" not in done.out
        assert "1 lost\n" in done.err and "1 running" not in done.err
        assert "started again, it goes on: python train.py" in done.err and "hostler worker" not in done.err
    assert "being delivered" not in second.err
    sweeps = hostler(scripts, "status", "--sweeps")
    assert "1 run: 1 lost" in sweeps.out and "nobody works on it" not in sweeps.err


def test_show_of_a_killed_script_names_the_command_to_start(scripts: Scripts) -> None:
    die(scripts)
    done = hostler(scripts, "show", "train")
    assert "its script died" in done.out and "python train.py" in done.out.split("next")[1]
    assert "attach" not in done.out and "start it again" in done.out
    [attempt] = json.loads(hostler(scripts, "show", "train", "--json").out)["attempts"]
    assert attempt["why"] == "lost"


def test_wait_for_a_killed_script_ends_with_its_command(scripts: Scripts) -> None:
    die(scripts)
    done = hostler(scripts, "wait", "train")
    assert done.code == 1 and "started again, it goes on: python train.py" in done.err


def test_living_script_is_left_alone_by_readers(scripts: Scripts) -> None:
    scripts.write(TRAINS.replace("1 steps", "1d"))
    with scripts.running(PAUSE="0.2") as process:
        line_of(process, "step 1")
        done = hostler(scripts, "status")
        assert process.poll() is None and "1 running" in done.err and "died" not in done.err
        assert scripts.curve(scripts.row(), "loss") == [], "its points are its own to deliver"
        scripts.kill(process)


def test_delivered_script_goes_on_from_its_newest_checkpoint(scripts: Scripts) -> None:
    scripts.write(TRAINS)
    with scripts.running(PAUSE="0.05") as process:
        line_of(process, "step 10")
        scripts.kill(process)
    hostler(scripts, "status")
    assert checkpoints.committed(scripts.opened(), scripts.row().id)
    done = scripts.run()
    assert done.code == 0 and "goes on from step" in done.err and "step 0\n" not in done.out
    row = scripts.row()
    assert (row.state, row.attempt) == ("done", 2)
    assert scripts.curve(row, "loss") == [(n, n + 1.0) for n in range(30)]


def test_readers_and_a_new_start_at_once_double_nothing(scripts: Scripts) -> None:
    scripts.write(TRAINS)
    with scripts.running(PAUSE="0.02") as process:
        line_of(process, "step 10")
        scripts.kill(process)
    readers = [begin(scripts, "-m", "hostler", "status") for _ in range(3)]
    done = scripts.run()
    ended = [(reader.communicate(timeout=600), reader.returncode) for reader in readers]
    assert done.code == 0 and [code for _, code in ended] == [0, 0, 0], (done.err, ended)
    row = scripts.row()
    assert (row.state, row.attempt) == ("done", 2)
    assert scripts.curve(row, "loss") == [(n, n + 1.0) for n in range(30)]


def test_reader_killed_while_delivering_leaves_the_rest_to_the_next(scripts: Scripts) -> None:
    die(scripts)
    for delay in (0.05, 0.2, 0.4):
        reader = begin(scripts, "-m", "hostler", "status")
        time.sleep(delay)
        reader.kill()
        reader.communicate()
    assert hostler(scripts, "status").code == 0
    assert scripts.curve(scripts.row(), "loss") == [(n, 1.0 / (n + 1)) for n in range(COUNT)]


def test_script_killed_after_finish_is_done_for_readers(scripts: Scripts) -> None:
    dies = "import hostler.sdk.alone.home as h\n    h.AloneHome.finish = lambda *_: os.kill(os.getpid(), 9)"
    scripts.write(TRAINS.replace("run.finish(", f"{dies}\n    run.finish("))
    assert scripts.run().code == -9
    assert "1 done" in hostler(scripts, "status").err
    end = scripts.state(scripts.row()).end
    assert end is not None and end["result"] == {"total": 30}


def test_unwritable_store_is_read_and_its_killed_script_is_lost(scripts: Scripts) -> None:
    if sys.platform != "linux" or os.geteuid():
        pytest.skip("mounting needs root on Linux")
    store = scripts.project / ".hostler"
    die(scripts)
    for words in (["--bind", str(store), str(store)], ["-o", "remount,bind,ro", str(store)]):
        if subprocess.run(["mount", *words], capture_output=True).returncode:
            pytest.skip("mounting needs rights")
    try:
        done = hostler(scripts, "status")
    finally:
        subprocess.run(["umount", str(store)], check=True)
    assert done.code == 0 and "1 lost\n" in done.err and "could not be delivered" in done.err
    assert hostler(scripts, "status").code == 0
    until(lambda: len(scripts.curve(scripts.row(), "loss")) == COUNT)
