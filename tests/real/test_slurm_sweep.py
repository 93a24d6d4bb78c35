"""Walk 2: a sweep on Slurm, from grid file to data frame; and what a person types on the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_slurm import TIMES

import hostler
from frozen import frozen, processes
from secret_world import NAMES, Hold, Planted, private, script
from slurm_cluster import Cluster, cluster

TRAIN = """
import argparse, json, time
asked = argparse.ArgumentParser()
for name in ("--lr", "--width", "--nap"):
    asked.add_argument(name, type=float, default=0.0)
given = asked.parse_args()
time.sleep(given.nap)
print(json.dumps({"step": 1, "score": given.lr * given.width}))
"""
GRID = "name: grid\ncommand: python train.py\nmetric: score\nparameters:\n  lr: [0.1, 0.2]\n  width: [1, 2]\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm"), nodes=2, cpus=4) as made:
        yield made


@pytest.fixture
def desk(site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {
        **site.variables,
        **{f"HOSTLER_{k.upper()}": str(v) for k, v in TIMES.items()},
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "it's my project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "grid.yaml").write_text(GRID)
    (folder / "hostler.yaml").write_text("name: mine\nfleets:\n  tau: {backend: slurm, workers: 2}\n")
    return folder


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hostler", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def said(folder: Path, *words: str) -> str:
    done = typed(folder, *words)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


def test_grid_file_is_one_command_and_ends_as_data_frame(desk: Path) -> None:
    shown = said(desk, "sweep", "--on", "tau", "--dry-run", "grid.yaml")
    assert "--array=0-3%2" in shown and "4 runs" in shown
    said(desk, "sweep", "--on", "tau", "-y", "grid.yaml")
    said(desk, "wait", "grid")
    frame = hostler.frame(str(desk / ".hostler"), "grid")
    assert len(frame) == 4 and set(frame["state"]) == {"done"}
    assert sorted(frame["score"]) == pytest.approx([0.1, 0.2, 0.2, 0.4])
    assert "0.4" in said(desk, "best", "grid")


def test_status_says_why_workers_wait_and_resubmission_queues_nothing_twice(
    desk: Path, site: Cluster
) -> None:
    (desk / "slow.yaml").write_text(GRID.replace("grid", "slow").replace("width:", "nap: [600]\n  width:"))
    said(desk, "sweep", "--on", "tau", "-y", "slow.yaml")
    site.until(lambda: list(site.states().values()).count("RUNNING") == 2, 60, "no two of them run")
    why = "tau: 2 run, 2 wait: as many of its array run as `workers` allows (JobArrayTaskLimit)"
    shown = list[str]()  # a worker runs once it has beaten
    site.until(lambda: shown.append(said(desk, "status")) or why in shown[-1], 60, "they do not beat")
    assert "nobody works on" not in shown[-1]
    assert "are in the queue already" in said(desk, "sweep", "--on", "tau", "-y", "-r", "slow.yaml")
    assert len(site.states()) <= 4
    assert "nothing of tau is left" in said(desk, "down", "tau")
    assert not site.states() or set(site.states().values()) == {"COMPLETING"}


def test_status_does_not_call_tasks_running_whose_workers_are_silent(
    desk: Path, site: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm says RUNNING all the time."""
    for name, value in {"HOSTLER_BEAT": "0.5", "HOSTLER_LEASE": "6"}.items():
        monkeypatch.setenv(name, value)
    (desk / "still.yaml").write_text(GRID.replace("grid", "still").replace("width:", "nap: [600]\n  width:"))
    said(desk, "sweep", "--on", "tau", "-y", "still.yaml")
    site.until(lambda: "tau: 2 run, 2 wait" in said(desk, "status"), 60, "they do not beat")
    with frozen(processes("hostler.worker", str(desk / ".hostler"))):
        silent = "tau: 2 started, no sign of life yet, 2 wait"
        site.until(lambda: silent in said(desk, "status"), 60, "they are called running")
        assert list(site.states().values()).count("RUNNING") == 2
    assert "nothing of tau is left" in said(desk, "down", "tau")


def test_tasks_waiting_for_one_sweep_do_not_serve_another(desk: Path, site: Cluster) -> None:
    site.run("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        for name in ("one", "two"):
            (desk / f"{name}.yaml").write_text(
                GRID.replace("name: grid", f"name: {name}").replace("0.1, 0.2", "1")
            )
            assert "already" not in said(desk, "sweep", "--on", "tau", "-y", f"{name}.yaml")
        assert len(site.states()) == 4
        assert "are in the queue already" in said(desk, "up", "tau")
        child = subprocess.Popen(
            [sys.executable, "-m", "hostler", "run", "--on", "tau", "train.py", "--lr", "3"],
            cwd=desk, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stderr is not None
        heard = [child.stderr.readline(), child.stderr.readline()]
        assert heard[1] == "hostler: its worker waits: its partition is down (PartitionDown)\n", heard
        assert len(site.states()) == 5
    finally:
        site.run("scontrol", "update", "PartitionName=main", "State=UP")
    said(desk, "wait", "one", "two")
    assert child.wait(120) == 0 and "score" in child.communicate()[0]


FROM_PYTHON = """
import hostler
if __name__ == "__main__":
    found = hostler.sweep("python train.py", {"lr": [1, 2, 3]}, on="tau", name="mine").wait(60)
    print(*found.frame()["state"])
"""


def test_sweep_from_python_is_queued_like_one_from_a_file(desk: Path) -> None:
    (desk / "go.py").write_text(FROM_PYTHON)
    done = subprocess.run([sys.executable, "go.py"], cwd=desk, capture_output=True, text=True, check=False)
    assert done.stdout == "done done done\n", done.stderr
    logs = list((desk / ".hostler/fleets/tau/logs").iterdir())
    assert len(logs) == 3 and not list(desk.glob("slurm-*"))


CALLS = """
import hostler
from calls import square
if __name__ == "__main__":
    with hostler.Executor(on="tau") as pool:
        print(*[job.result() for job in pool.map(square, [2, 3])])
"""


def test_executor_calls_a_function_in_tasks_of_the_queue(desk: Path) -> None:
    (desk / "calls.py").write_text(
        "import os\ndef square(x):\n    return x * x * bool(os.environ['SLURM_JOB_ID'])\n"
    )
    (desk / "go.py").write_text(CALLS)
    done = subprocess.run([sys.executable, "go.py"], cwd=desk, capture_output=True, text=True, check=False)
    assert done.stdout == "4 9\n", done.stderr


LATER = """
import hostler, hostler.executor
from calls import square
hostler.executor.ALONE = 0.5
if __name__ == "__main__":
    with hostler.Executor(on="tau", budget={"cost": 5}) as pool:
        jobs = pool.map(square, [2, 3])
        pool._submit_new()
        jobs.append(pool.submit(square, 4))  # the first launch has all of the money
        print(*[job.result() for job in jobs])
"""


@pytest.mark.soak
def test_later_call_is_queued_once_a_launch_has_left_the_budget(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTLER_ACCOUNT", "0.5")
    (desk / "calls.py").write_text("def square(x):\n    return x * x\n")
    (desk / "go.py").write_text(LATER)
    settings = desk / "hostler.yaml"
    settings.write_text(settings.read_text().replace("backend: slurm,", "backend: slurm, price: 36,"))
    done = subprocess.run([sys.executable, "go.py"], cwd=desk, capture_output=True, text=True, check=False)
    assert done.stdout == "4 9 16\n", done.stderr


HYDRA = """
import os, hydra
@hydra.main(version_base=None, config_path=None)
def main(config):
    return config.lr * bool(os.environ["SLURM_JOB_ID"])
if __name__ == "__main__":
    main()
"""


def test_hydra_multirun_is_tasks_of_the_queue(desk: Path) -> None:
    (desk / "tune.py").write_text(HYDRA)
    with open(desk / "hostler.yaml", "a") as settings:
        settings.write(f"python: {{exe: {sys.executable}}}\n")  # which has Hydra
    words = ["-m", "+lr=2,3", "hydra/launcher=hostler", "hydra.launcher.on=tau"]
    command = [sys.executable, "tune.py", *words]
    done = subprocess.run(command, cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(hostler.frame(str(desk / ".hostler"))["result"]) == [2, 3]


def test_own_sbatch_file_queues_a_grid_without_any_configuration(desk: Path) -> None:
    (desk / "run.sbatch").write_text('#!/bin/bash\n#SBATCH --cpus-per-task=1\nexport MINE=1\nsrun "$@"\n')
    said(desk, "sweep", "-s", "run.sbatch", "-y", "grid.yaml")
    said(desk, "wait", "grid")
    assert set(hostler.frame(str(desk / ".hostler"), "grid")["state"]) == {"done"}


OLD_TRAIN = """
import json, os, sys, yaml
given = yaml.safe_load(open(sys.argv[1]))
print(json.dumps({"step": 1, "score": given["lr"] * given["width"] + int(os.environ["FROM_SCRIPT"])}))
"""


def test_script_of_python_train_py_queues_a_job_file(desk: Path) -> None:
    (desk / "hostler.yaml").unlink()
    (desk / "train.py").write_text(OLD_TRAIN)
    (desk / "job.yaml").write_text(
        "job_details: {name: old, output_dir: results}\n"
        "parameters: {lr: '[float(x) for x in 10.0 ** np.arange(-5, -3)]', width: [1, 2]}\n"
    )
    script = "#!/bin/bash\n#SBATCH --output=%j.out\n#SBATCH --cpus-per-task=1\nexport FROM_SCRIPT=7\n\n"
    (desk / "submit_cpu.sh").write_text(f"{script}OMP_NUM_THREADS=2 python train.py $1")
    said(desk, "sweep", "-s", "submit_cpu.sh", "-y", "--wait", "job.yaml")
    frame = hostler.frame(str(desk / ".hostler"), "old")
    assert sorted(frame["score"]) == pytest.approx([7.00001, 7.00002, 7.0001, 7.0002])
    assert len(list((desk / "results").glob("*-old/00*-lr=*/done"))) == 4


def test_unsuitable_sbatch_file_is_refused_before_anything_is_submitted(desk: Path) -> None:
    (desk / "run.sbatch").write_text("#!/bin/bash\nhostname\n")
    assert "does not run its arguments" in typed(desk, "sweep", "-s", "run.sbatch", "-y", "grid.yaml").stderr
    assert "No such file" in typed(desk, "sweep", "-s", "nowhere.sbatch", "-y", "grid.yaml").stderr
    assert typed(desk, "status", "grid").returncode != 0


FLAKY = TRAIN.replace("time.sleep", """
import os, pathlib
marks = pathlib.Path(os.environ["MARKS"])
(marks / (os.environ["HOSTLER_RUN"] + "-" + os.environ["HOSTLER_ATTEMPT"])).touch()
if given.lr == 0.2 and not (marks / "repaired").exists(): raise ValueError("a bug")
while not (marks / "go").exists(): time.sleep(0.05)
time.sleep""")  # fmt: skip


def test_a_retry_skips_live_jobs_and_queues_only_what_failed(
    desk: Path, site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("MARKS", str(marks))
    (desk / "train.py").write_text(FLAKY)
    (desk / "hostler.yaml").write_text("name: mine\nfleets:\n  tau: {backend: slurm, workers: 4}\n")
    (desk / "grid.yaml").write_text(GRID + "retries: 0\n")
    said(desk, "sweep", "--on", "tau", "-y", "grid.yaml")
    site.until(lambda: len(list(marks.iterdir())) == 4, 60, "not all have started")
    site.until(lambda: len(site.states()) == 2, 60, "those that failed are still there")
    (marks / "repaired").touch()
    site.run(
        "scontrol", "update", "PartitionName=main", "State=DOWN"
    )  # what lives goes on, what is new waits
    try:
        answer = said(desk, "retry", "--on", "tau", "grid")
        assert "grid/2: queued again" in answer and "grid/0: already running" in answer, answer
        assert len(site.states()) == 4, "two that live, two for what failed"
        assert "are in the queue already" in said(desk, "sweep", "--on", "tau", "-y", "-r", "grid.yaml")
    finally:
        site.run("scontrol", "update", "PartitionName=main", "State=UP")
    (marks / "go").touch()
    said(desk, "wait", "grid")
    attempts = sorted(path.name.rpartition("-")[0][:7] for path in marks.glob("0*"))
    assert attempts == ["0000000", "0000001", *["0000002"] * 2, *["0000003"] * 2]


@pytest.mark.parametrize("how", ["asked", "flag", "left"])
def test_jobs_queued_before_a_refusal_are_listed_and_cancelled(
    desk: Path, site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A site that takes the first array and refuses the second."""
    tools = tmp_path / "tools"
    tools.mkdir()
    text = "sbatch: error: Invalid account or account/partition combination specified"
    (tools / "sbatch").write_text(
        f'#!/bin/sh\n[ -e "$0.once" ] && {{ echo "{text}" >&2; exit 1; }}\ntouch "$0.once"\n'
        f'exec {shutil.which("sbatch")} "$@"\n'
    )
    (tools / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    (desk / "hostler.yaml").write_text("name: mine\nfleets:\n  tau: {backend: slurm, workers: 2, chain: 2}\n")
    site.run("scancel", "--user", "root")
    site.until(lambda: not site.states(), 60, "something is left")
    site.run("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        words = {"asked": [], "flag": ["-y", "--all-or-none"], "left": ["-y"]}[how]
        command = [sys.executable, "-m", "hostler", "sweep", "--on", "tau", *words, "grid.yaml"]
        done = subprocess.run(
            command,
            cwd=desk,
            input="y\ny\n" if how == "asked" else "",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1 and "the account is not valid here" in done.stderr, done.stderr
        assert "queued before that: " in done.stderr and "grid is in the store and waits" in done.stderr
        if how == "left":
            assert len(site.states()) == 4 and "takes back what is queued" in done.stderr
        else:
            assert not site.states() and "that is cancelled" in done.stderr
            assert ("Cancel what is queued" in done.stderr) == (how == "asked")
    finally:
        site.run("scancel", "--user", "root")
        site.run("scontrol", "update", "PartitionName=main", "State=UP")
        site.until(lambda: not site.states(), 60, "something is left")


@pytest.mark.soak
def test_two_hundred_runs_of_an_array_all_end(desk: Path) -> None:
    text = GRID.replace("[1, 2]", str(list(range(100)))).replace("name: grid", "name: large")
    (desk / "large.yaml").write_text(text)
    said(desk, "sweep", "--on", "tau", "-y", "large.yaml")
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "wait", "large"], cwd=desk, timeout=900, check=False
    )
    assert done.returncode == 0 and len(hostler.frame(str(desk / ".hostler"), "large")) == 200


def test_secret_is_in_a_private_file_and_goes_at_last(
    desk: Path, site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted, hold = Planted(), Hold(tmp_path)
    (desk / "train.py").write_text(script(hold))
    lines = f"command: python train.py\nretries: 0\nsecrets: [{', '.join(NAMES)}]\n"
    (desk / "hostler.yaml").write_text((desk / "hostler.yaml").read_text() + lines)
    for name, value in planted.values.items():
        monkeypatch.setenv(name, value)
    told = [said(desk, "run", "--on", "tau", "--name", "one", how) for how in ("--dry-run", "--detach")]
    for name in planted.values:
        monkeypatch.delenv(name)
    site.until(hold.waits, 90, "it does not run")
    assert not planted.listed() and not planted.beside_the_run()
    files = [path for path in planted.files(tmp_path, site.folder) if path.name != "output.log"]
    assert [path.parent for path in files] == [tmp_path / "cache" / "secrets"] and private(files[0])
    assert files[0].name in told[0], "the plan says where it will be"
    hold.let_go()
    typed(desk, "wait", "one")
    told += [said(desk, *words) for words in (("logs", "one"), ("show", "--json", "one"), ("errors", "one"))]
    assert planted.arrived(told[2]), told[2][-3000:]
    assert not any(map(planted.is_in, told))
    site.until(lambda: not planted.files(tmp_path, site.folder), 90, "something is left")
