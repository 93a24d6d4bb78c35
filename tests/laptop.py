"""Typed on the laptop of some hosts: submits runs of a project, or tells what became of them."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "faults"))

from killer import keys_of, outcome

from hostler.backends.project_file import load_project
from hostler.fleet.submit import draft, submit
from hostler.records.rows import rows
from hostler.records.run import control
from hostler.records.sweep import sweeps
from hostler.store import Store, open_store


def send(url: str, count: str, steps: str, nap: str) -> None:
    send_to(open_store(url), Path("hostler.yaml").absolute(), int(count), int(steps), float(nap))


def send_to(store: Store, file: Path, count: int, steps: int, nap: float) -> None:
    """So many runs of the project of that file."""
    project = load_project(file)
    runs = [{"lr": n + 1, "steps": steps, "nap": nap} for n in range(count)]
    job = draft(project, project.command or (), title="walk", style=project.style, runs=runs)
    submit(store, project, job)


def outcomes(url: str) -> None:
    print(json.dumps(outcomes_of(open_store(url))))


def outcomes_of(store: Store) -> list[dict[str, Any]]:
    """What the store alone tells of every run: each must have ended exactly once."""
    found = []
    for name in sweeps.names(store):
        for key in keys_of(sweeps.load(store, name)):
            one = outcome(store, key)
            entries = [entry["kind"] for entry in control.entries_of(store, key)]
            files = {file: data.decode() for file, data in one.files.items()}
            found.append({"state": one.state.state, "points": one.points, "files": files, "kinds": entries})
    return found


def wait(url: str, state: str, count: str, seconds: str) -> None:
    """In one process, for a command at each look uses a core up."""
    wait_for(open_store(url), state, int(count), float(seconds))


def wait_for(store: Store, state: str, count: int, seconds: float) -> None:
    """Until so many runs are in that state."""
    end = time.monotonic() + seconds
    while sum(row.state == state for row in rows(store)) < count:
        assert time.monotonic() < end, [row.state for row in rows(store)]
        time.sleep(0.1)


def keys(url: str, prefix: str) -> None:
    print(json.dumps([entry.key for entry in open_store(url).list(prefix)]))


def bucket(endpoint: str, name: str) -> None:
    import boto3
    from botocore.config import Config

    config = Config(retries={"max_attempts": 10, "mode": "standard"}, connect_timeout=2)
    boto3.client("s3", endpoint_url=endpoint, config=config).create_bucket(Bucket=name)


if __name__ == "__main__":
    verbs = (send, outcomes, wait, keys, bucket)
    {verb.__name__: verb for verb in verbs}[sys.argv[1]](*sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)
