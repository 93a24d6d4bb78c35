"""A multirun of the real Hydra whose jobs are runs: `hydra/launcher=hostler`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import servers
from cli_world import eventually
from hostler.records.rows import Row, rows
from hostler.store import open_store

SOURCE = Path(__file__).parents[2] / "src"
SWEEPERS = Path(sys.prefix) / "hydra-sweeper"  # packages of tests/hydra_sweeper.txt
SCRIPT = """
import sys
import hydra
from hydra.core.hydra_config import HydraConfig

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config):
    if config.lr == 3:
        raise ValueError("lr is too large")
    job = HydraConfig.get().job  # as in Hydra's own multirun
    assert job.id.startswith(f"{job.num:07}-"), job
    return config.lr * config.model.width + config.get("extra", 0)

if __name__ == "__main__":
    sys.exit(main())
"""
SWEEPER = """
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper

class Climbing(Sweeper):
    def __init__(self, **keys):
        pass

    def setup(self, *, hydra_context, task_function, config):
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config)

    def sweep(self, arguments):
        lr = 1.0
        for number in range(3):
            [job] = self.launcher.launch([[*arguments, f"lr={lr}"]], initial_job_idx=number)
            lr = job.return_value
        print("climbed to", lr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "work"
    (project / "conf").mkdir(parents=True)
    (project / "conf" / "config.yaml").write_text("lr: 0.5\nmodel: {width: 8}\n")
    (project / "train.py").write_text(SCRIPT)
    return project


def begun(folder: Path, *words: str, beside: Path | None = None) -> subprocess.Popen[str]:
    """`beside`: packages that come before those of this Python."""
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOSTLER_CACHE": str(folder.parent / "cache"),
        "PYTHONPATH": os.pathsep.join(map(str, filter(None, [SOURCE, beside]))),
    }
    command = [sys.executable, "train.py", "-m", "hydra/launcher=hostler", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environ, stdout=pipe, stderr=pipe, text=True)


def multirun(folder: Path, *words: str, beside: Path | None = None) -> subprocess.CompletedProcess[str]:
    with begun(folder, *words, beside=beside) as process:
        out, said = process.communicate(timeout=280)
    return subprocess.CompletedProcess(process.args, process.returncode, out, said)


def runs(folder: Path) -> list[Row]:
    return rows(open_store(str(folder / ".hostler")))


def test_multirun_typed_again_runs_only_what_is_missing(folder: Path) -> None:
    first = multirun(folder, "lr=0.25,0.5", "model.width=2", "+extra=1")
    assert first.returncode == 0, first.stderr
    found = {row.params["lr"]: row.metrics["result"] for row in runs(folder)}
    assert found == {0.25: 1.5, 0.5: 2.0}
    again = multirun(folder, "lr=0.25,0.5,1", "model.width=2", "+extra=1")
    assert "3 calls, 1 new" in again.stderr, again.stderr
    assert [row.attempt for row in runs(folder)] == [1, 1, 1]


def test_multirun_of_another_results_folder_finds_what_is_done(folder: Path) -> None:
    """As with the time in its name: Hydra leaves a file there, which is not code."""
    words = ["lr=0.25,0.5", "model.width=2"]
    assert multirun(folder, *words, "hydra.sweep.dir=logs/a/1").returncode == 0
    assert (folder / "logs/a/1/multirun.yaml").exists()
    assert "2 calls, 0 new" in multirun(folder, *words, "hydra.sweep.dir=logs/b/2").stderr


def test_interrupted_multirun_typed_again_runs_only_what_is_missing(folder: Path) -> None:
    """Interrupted as by Ctrl-C, while the second of three jobs runs and waits for a file."""
    gate = f"while config.lr > 0.25 and not pathlib.Path({str(folder.parent / 'go')!r}).exists():\n"
    waits = SCRIPT.replace("import sys", "import pathlib, sys, time")
    waits = waits.replace(
        "    if config.lr == 3", f"    {gate}        time.sleep(0.05)\n    if config.lr == 3"
    )
    (folder / "train.py").write_text(waits)
    words = ["lr=0.25,0.5,1", "model.width=2"]
    first = begun(folder, *words)
    try:
        eventually(lambda: {row.params["lr"]: row.state for row in runs(folder)}.get(0.5) == "running", 120)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=60)
    finally:
        first.kill()
    assert first.returncode and "KeyboardInterrupt" in said
    (folder.parent / "go").touch()
    again = multirun(folder, *words)
    assert again.returncode == 0 and "3 calls, 0 new" in again.stderr, again.stderr
    found = {row.params["lr"]: (row.metrics["result"], row.attempt) for row in runs(folder)}
    assert found == {0.25: (0.5, 1), 0.5: (1.0, 1), 1: (2.0, 1)}


def test_multirun_in_a_folder_of_the_project_runs_there(folder: Path) -> None:
    (folder.parent / "hostler.yaml").write_text("name: above\n")
    (folder.parent / ".hostlerignore").write_text("cache\n")
    (folder / "width.txt").write_text("4")
    reads = SCRIPT.replace("config.model.width", 'int(open(to_absolute_path("width.txt")).read())')
    (folder / "train.py").write_text(reads.replace("import hydra", "import hydra\nfrom hydra.utils import *"))
    first = multirun(folder, "lr=0.5,0.25")
    assert first.returncode == 0, first.stderr
    assert {row.params["lr"]: row.metrics["result"] for row in runs(folder.parent)} == {0.5: 2.0, 0.25: 1.0}
    assert {row.params["folder"] for row in runs(folder.parent)} == {"work"}
    (folder.parent / "multirun").mkdir()
    (folder.parent / "multirun" / "of-another.yaml").write_text("")
    assert "2 calls, 0 new" in multirun(folder, "lr=0.5,0.25").stderr


def test_failed_job_brings_its_remote_traceback(folder: Path) -> None:
    with open(folder / "conf" / "config.yaml", "a") as config:
        config.write("hydra: {launcher: {name: mine, keys: {retries: 0}}}\n")
        config.write("defaults: [_self_, {override hydra/launcher: hostler}]\n")
    done = multirun(folder, "lr=3")
    assert done.returncode == 1
    assert "ValueError: lr is too large (train.py:9" in done.stderr
    assert 'File "train.py", line 9, in main' in done.stderr
    assert "hydra_plugins" not in done.stderr and "hostler/executor.py" not in done.stderr


def test_fleet_that_is_not_there_is_one_line(folder: Path) -> None:
    done = multirun(folder, "lr=1", "hydra.launcher.on=nope")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "hostler: no fleet named 'nope' (" in done.stderr and not runs(folder)


def test_sweeper_gets_values_that_main_returned(folder: Path) -> None:
    (folder / "hydra_plugins").mkdir()
    (folder / "hydra_plugins" / "climbing.py").write_text(SWEEPER)
    target = "++hydra.sweeper._target_=hydra_plugins.climbing.Climbing"
    done = multirun(folder, "model.width=2", target)
    assert "climbed to 8.0" in done.stdout, done.stderr
    assert [row.params["lr"] for row in runs(folder)] == [1.0, 2.0, 4.0]


def test_optuna_sweeper_typed_again_finds_its_trials(folder: Path) -> None:
    if not SWEEPERS.is_dir():
        servers.missing("Hydra's sweeper by Optuna is not installed: `make test` does it, with a network")
    words = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=4", "hydra.sweeper.n_jobs=2", "model.width=2"]
    words += ["hydra.sweeper.sampler.seed=1", "hydra.sweep.dir=tuned", "lr=interval(0.0, 1.0)"]
    first = multirun(folder, *words, beside=SWEEPERS)
    assert first.returncode == 0, first.stderr
    found = {row.metrics["result"]: row.params["lr"] for row in runs(folder)}
    assert len(found) == 4 and all(value == 2 * lr for value, lr in found.items())
    told = yaml.safe_load((folder / "tuned" / "optimization_results.yaml").read_text())
    assert told["best_value"] == min(found) and told["best_params"]["lr"] == found[min(found)]
    again = multirun(folder, *words, beside=SWEEPERS)
    assert again.stderr.count("2 calls, 0 new") == 2, again.stderr
    assert [row.attempt for row in runs(folder)] == [1] * 4
