"""Typed on the laptop of some hosts: submits runs of a project, or tells what became of them."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "faults"))

from killer import keys_of, outcome

from claim_times import claimed_at, claims, last_beat
from hostler.backends.project_file import load_project
from hostler.fleet.submit import draft, submit
from hostler.records.rows import rows
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.store import open_store


def send(url: str, count: str, steps: str, nap: str) -> None:
    project = load_project(Path("hostler.yaml").absolute())
    runs = [{"lr": n + 1, "steps": int(steps), "nap": float(nap)} for n in range(int(count))]
    job = draft(project, project.command or (), title="walk", style=project.style, runs=runs)
    submit(open_store(url), project, job)


def outcomes(url: str) -> None:
    store = open_store(url)
    found = []
    for name in sweeps.names(store):
        for key in keys_of(sweeps.load(store, name)):
            one = outcome(store, key)
            entries = [entry["kind"] for entry in control.entries_of(store, key)]
            files = {file: data.decode() for file, data in one.files.items()}
            found.append({"state": one.state.state, "points": one.points, "files": files, "kinds": entries})
    print(json.dumps(found))


def wait(url: str, state: str, count: str, seconds: str) -> None:
    """Until so many runs are in that state: in one process, for a command at each look uses a core up."""
    store, end = open_store(url), time.monotonic() + float(seconds)
    while sum(row.state == state for row in rows(store)) < int(count):
        assert time.monotonic() < end, [row.state for row in rows(store)]
        time.sleep(0.1)


def takeover(url: str, host: str) -> None:
    """Seconds from the last beat of the worker on that host to the next claim of its run."""
    store, end = open_store(url), time.monotonic() + 120
    [lost] = [RunKey(row.sweep, row.id) for row in rows(store) if row.host == host]
    while len(claims(store, lost)) < 2:
        assert time.monotonic() < end, [row.state for row in rows(store)]
        time.sleep(0.1)
    print(claimed_at(store, lost, 2) - last_beat(store, lost))


def keys(url: str, prefix: str) -> None:
    print(json.dumps([entry.key for entry in open_store(url).list(prefix)]))


def bucket(endpoint: str, name: str) -> None:
    import boto3
    from botocore.config import Config

    config = Config(retries={"max_attempts": 10, "mode": "standard"}, connect_timeout=2)
    boto3.client("s3", endpoint_url=endpoint, config=config).create_bucket(Bucket=name)


if __name__ == "__main__":
    verbs = (send, outcomes, wait, keys, takeover, bucket)
    {verb.__name__: verb for verb in verbs}[sys.argv[1]](*sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)
