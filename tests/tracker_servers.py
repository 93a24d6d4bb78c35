"""Servers of tracking tools, the tools' own, on loopback: MLflow's keeps runs, the others show folders."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from hostler.trackers.mlflow import client
from servers import free_ports, running

Curve = list[tuple[int, float]]


@contextmanager
def mlflow(folder: Path) -> Iterator[str]:
    """MLflow's tracking server. Started as `mlflow server` does, without the seconds of that command."""
    database = f"sqlite:///{folder}/mlflow.db"
    client(database).search_experiments()  # its tables are made once
    [port] = free_ports(1)
    kept = [f"_MLFLOW_SERVER_FILE_STORE={database}", f"_MLFLOW_SERVER_ARTIFACT_ROOT={folder}/artifacts"]
    serve = ["-m", "uvicorn", "--port", str(port), "mlflow.server.fastapi_app:app"]
    with running(["env", *kept, sys.executable, *serve], port, folder, "MLflow", _nothing) as url:
        yield url


@contextmanager
def trackio(folder: Path) -> Iterator[str]:
    """The dashboard that `trackio show` opens, of the projects in a folder."""
    [port] = free_ports(1)
    show = f"import trackio; trackio.show(open_browser=False, server_port={port}, block_thread=True)"
    command = ["env", f"TRACKIO_DIR={folder}", sys.executable, "-c", show]
    with running(command, port, folder, "trackio", _nothing) as url:
        yield url


@contextmanager
def tensorboard(folder: Path) -> Iterator[str]:
    """TensorBoard, of the runs below a folder."""
    [port] = free_ports(1)
    words = ["--logdir", str(folder), "--port", str(port), "--load_fast", "false"]
    command = [sys.executable, "-m", "tensorboard.main", *words]
    with running(command, port, folder.parent, "TensorBoard", _nothing) as url:
        yield url


def trackio_shows(url: str, project: str) -> dict[str, Curve]:
    """Curves of `loss` by the ids of runs, as the dashboard's page asks for them."""
    runs = _ask(f"{url}/api/get_runs_for_project", {"project": project})["data"]
    found = {
        run["id"]: _ask(f"{url}/api/get_logs", {"project": project, "run_id": run["id"]}) for run in runs
    }
    return {
        run: [(row["step"], row["loss"]) for row in logs["data"] if "loss" in row]
        for run, logs in found.items()
    }


def tensorboard_shows(url: str) -> dict[str, Curve]:
    """Curves of `loss` by the names of runs, as the page asks for them."""
    place = f"{url}/data/plugin/scalars/scalars?tag=loss&run="
    return {
        run: [(step, value) for _, step, value in _ask(place + quote(run, safe=""))]
        for run in _ask(f"{url}/data/runs")
    }


def _ask(url: str, given: Any = None) -> Any:
    data = None if given is None else json.dumps(given).encode()
    asked = Request(url, data=data, headers={"content-type": "application/json"})
    with urlopen(asked, timeout=60) as answer:
        return json.load(answer)


def _nothing(url: str) -> None:
    """It is ready as it is."""
