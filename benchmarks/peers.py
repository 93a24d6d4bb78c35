"""What others take for the same, where they are installed: in the Python that HOSTLER_PEERS names.

Each peer does it its own way, in processes of its own: trivial work, 2 at a time; or five metrics a call.
Their rows have no bound.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 20

SUBMITIT = """
import sys, threading, time
import submitit
RUNS = int(sys.argv[1])

def trivial():
    return 0

executor = submitit.LocalExecutor(folder="jobs")
left = list(range(RUNS))

def work():
    while left:
        left.pop()
        executor.submit(trivial).result()

begun = time.perf_counter()
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
print("took", time.perf_counter() - begun)
"""

SYNE_TUNE = """
import logging, sys, time
from pathlib import Path
from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend import LocalBackend
from syne_tune.config_space import uniform
from syne_tune.optimizer.baselines import RandomSearch
logging.getLogger().setLevel(logging.ERROR)
RUNS = int(sys.argv[1])
Path("trial.py").write_text(
    "import argparse\\nfrom syne_tune import Reporter\\np = argparse.ArgumentParser()\\n"
    "p.add_argument('--x', type=float)\\na, _ = p.parse_known_args()\\nReporter()(loss=a.x)\\n"
)
search = RandomSearch({"x": uniform(0, 1)}, metrics=["loss"])
tuner = Tuner(
    LocalBackend("trial.py"), search, StoppingCriterion(max_num_trials_finished=RUNS), n_workers=2,
    sleep_time=0.05, print_update_interval=1e9, save_tuner=False,
)
begun = time.perf_counter()
tuner.run()
print("took", time.perf_counter() - begun)
"""

RAY_TUNE = """
import sys, time
import ray
from ray import tune
RUNS = int(sys.argv[1])
ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)

def trivial(config):
    tune.report({"loss": config["x"]})

config = tune.TuneConfig(num_samples=RUNS, max_concurrent_trials=2)
tuner = tune.Tuner(trivial, param_space={"x": tune.uniform(0, 1)}, tune_config=config)
begun = time.perf_counter()
tuner.fit()
print("took", time.perf_counter() - begun)
"""

# Each logs five metrics so many times, and says how long its calls took: without import, start and end.
LOGGING = """
import sys, time
COUNT = int(sys.argv[1])
VALUES = {"loss": 0.1, "accuracy": 0.2, "lr": 0.3, "norm": 0.4, "speed": 0.5}

def measure(log):
    log(0)
    begun = time.perf_counter()
    for step in range(1, COUNT + 1):
        log(step)
    print("took", time.perf_counter() - begun, flush=True)
"""

TRACKIO = """
import trackio
trackio.init(project="bench", embed=False)
measure(lambda step: trackio.log(VALUES, step=step))
trackio.finish()
"""

WANDB = """
import wandb
run = wandb.init(project="bench", mode="offline", settings=wandb.Settings(silent=True))
measure(lambda step: run.log(VALUES, step=step))
run.finish()
"""

TENSORBOARD = """
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("events")

def scalar(name, value, step):
    summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
    writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

measure(lambda step: [scalar(name, value, step) for name, value in VALUES.items()])
writer.close()
"""

MLFLOW = """
import pathlib
import mlflow
mlflow.set_tracking_uri(PLACE)
with mlflow.start_run():
    measure(lambda step: mlflow.log_metrics(VALUES, step=step))
"""

LOGGERS = {
    "trackio": (TRACKIO, 2000),
    "wandb, offline": (WANDB, 2000),
    "TensorBoard": (TENSORBOARD, 2000),
    "MLflow, SQLite": (MLFLOW.replace("PLACE", "'sqlite:///runs.db'"), 200),
    "MLflow, files": (MLFLOW.replace("PLACE", "pathlib.Path('runs').absolute().as_uri()"), 200),
}

SCRIPTS = {"submitit": SUBMITIT, "Syne Tune": SYNE_TUNE, "Ray Tune": RAY_TUNE}
PROGRAMS = ("torchx", "wandb", "dstack")


def python() -> str | None:
    """The Python that has them; None if no one was named."""
    return os.environ.get("HOSTLER_PEERS")


def each_run() -> dict[str, float]:
    """Milliseconds for a trivial run, of the peers that are there and work."""
    exe = python()
    found = {name: took(exe, name, script, RUNS) for name, script in SCRIPTS.items()} if exe else {}
    return {name: seconds / RUNS * 1e3 for name, seconds in found.items() if seconds is not None}


def logs() -> dict[str, float]:
    """Microseconds for a call that logs five metrics, of the peers that are there and work."""
    exe = python()
    found = {
        name: (took(exe, name, LOGGING + script, count), count)
        for name, (script, count) in (LOGGERS.items() if exe else ())
        if exe
    }
    return {name: seconds / count * 1e6 for name, (seconds, count) in found.items() if seconds is not None}


def helps(times: int) -> dict[str, float]:
    """Milliseconds for `--help`, the fastest of some tries."""
    folder = Path(python() or os.devnull).parent
    there = {name: folder / name for name in PROGRAMS if (folder / name).exists()}
    return {name: min(_seconds(path) for _ in range(times)) * 1e3 for name, path in there.items()}


def took(exe: str, name: str, script: str, runs: int) -> float | None:
    """Seconds that a peer's script says it took; None if it did not work."""
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as folder:
        (Path(folder) / "peer.py").write_text(script)
        quiet = {"RAY_AIR_NEW_OUTPUT": "0", "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1", "HOME": folder}
        quiet |= {"WANDB_SILENT": "true", "GIT_PYTHON_REFRESH": "quiet", "MLFLOW_ALLOW_FILE_STORE": "true"}
        done = subprocess.run(
            [exe, "peer.py", str(runs)],
            cwd=folder,
            env={**os.environ, **quiet, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
        )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("took ")]
    if done.returncode or not lines:
        print(f"{name} did not work: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return float(lines[-1][1])


def _seconds(program: Path) -> float:
    begun = time.perf_counter()
    subprocess.run([str(program), "--help"], capture_output=True, check=True)
    return time.perf_counter() - begun
