"""A scheduler that is a folder: `python folder_scheduler.py FOLDER [AT_ONCE]` runs the jobs in it.

ID.waits   a job: its command, variables and time limit, as JSON
ID.runs    the same job while it runs
ID.log     its output
ID.cancel  written by a person: end the job with SIGTERM; ID.kill: with SIGKILL
ID.again   written by the job: let it wait again once it has ended
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

LOOK = 0.05  # seconds between two looks at the folder


@dataclass(frozen=True)
class Running:
    job: Path
    process: subprocess.Popen[bytes]
    ends: float | None


def main(folder: Path, at_once: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    running: list[Running] = []
    while True:
        running = [one for one in running if not over(one)]
        for job in sorted(folder.glob("*.waits")):
            if job.with_suffix(".cancel").exists() or job.with_suffix(".kill").exists():
                forget(job)
            elif len(running) < at_once:
                running.append(start(job))
        time.sleep(LOOK)


def start(job: Path) -> Running:
    asked = json.loads(job.read_text())
    ends = time.time() + asked["time"] if asked["time"] else None
    own = {"FOLDER_JOB": str(job.with_suffix("")), **({"FOLDER_JOB_ENDS": str(ends)} if ends else {})}
    job = job.rename(job.with_suffix(".runs"))
    with open(job.with_suffix(".log"), "ab") as log:
        process = subprocess.Popen(
            asked["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **asked["variables"], **own},
            start_new_session=True,
        )
    return Running(job, process, ends)


def over(running: Running) -> bool:
    """Whether the job has ended; what people asked for, and its time limit, are seen to here."""
    job, process = running.job, running.process
    late = running.ends is not None and time.time() > running.ends
    if job.with_suffix(".kill").exists() or late:
        process.kill()
    elif job.with_suffix(".cancel").exists():
        job.with_suffix(".cancel").unlink()
        process.terminate()
    if process.poll() is None:
        return False
    if job.with_suffix(".again").exists():
        job.with_suffix(".again").unlink()
        job.rename(job.with_suffix(".waits"))
    else:
        forget(job)
    return True


def forget(job: Path) -> None:
    for suffix in (".waits", ".runs", ".cancel", ".kill", ".again", ".run"):
        job.with_suffix(suffix).unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2)
