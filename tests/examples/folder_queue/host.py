"""A job of the folder as the worker in it sees it: names its run, knows its time limit, asks to run again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from hostler import env
from hostler.backends.local.host import LocalHost


@dataclass(frozen=True)
class FolderHost(LocalHost):
    name = "folder"

    file: Path | None = None  # the folder and the job's id
    ends: float | None = None  # seconds since 1970 at which the scheduler kills the job

    def show(self, run: str) -> None:
        if self.file:
            self.file.with_suffix(".run").write_text(run)

    def seconds_left(self) -> float | None:
        return None if self.ends is None else self.ends - time.time()

    def give_back(self) -> bool | None:
        """Have the scheduler put the job back among those that wait, once this worker has left."""
        if self.file is None:
            return None
        self.file.with_suffix(".again").touch()
        return True


def this_host() -> FolderHost:
    job, ends = (env.inherited().get(name) for name in ("FOLDER_JOB", "FOLDER_JOB_ENDS"))
    return FolderHost(Path(job) if job else None, float(ends) if ends else None)
