"""A multirun of the real Hydra whose jobs are runs: `hydra/launcher=hostler`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.records.rows import Row, rows
from hostler.store import open_store

SCRIPT = """
import sys
import hydra

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config):
    if config.lr == 3:
        raise ValueError("lr is too large")
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


def multirun(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOSTLER_CACHE": str(folder.parent / "cache"),
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }
    command = [sys.executable, "train.py", "-m", "hydra/launcher=hostler", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=280)


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


def test_failed_job_brings_its_remote_traceback(folder: Path) -> None:
    with open(folder / "conf" / "config.yaml", "a") as config:
        config.write("hydra: {launcher: {name: mine, keys: {retries: 0}}}\n")
        config.write("defaults: [_self_, {override hydra/launcher: hostler}]\n")
    done = multirun(folder, "lr=3")
    assert done.returncode == 1
    assert "ValueError: lr is too large (train.py:8" in done.stderr
    assert 'File "train.py", line 8, in main' in done.stderr


def test_sweeper_gets_values_that_main_returned(folder: Path) -> None:
    (folder / "hydra_plugins").mkdir()
    (folder / "hydra_plugins" / "climbing.py").write_text(SWEEPER)
    target = "++hydra.sweeper._target_=hydra_plugins.climbing.Climbing"
    done = multirun(folder, "model.width=2", target)
    assert "climbed to 8.0" in done.stdout, done.stderr
    assert [row.params["lr"] for row in runs(folder)] == [1.0, 2.0, 4.0]
