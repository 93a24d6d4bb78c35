"""Finds Slurm on this machine for `hostler init`: sbatch, and the partitions of its cluster."""

from __future__ import annotations

import shutil

from hostler.backends.doctor import ask
from hostler.backends.fleet_files import Discovery
from hostler.backends.slurm.doctor import CONTROLLER, UNCONFIGURED


def discover() -> Discovery | None:
    if shutil.which("sbatch") is None:
        return None
    answer = ask(["sinfo", "--noheader", "--format=%P"], CONTROLLER)
    if UNCONFIGURED in answer.err:
        return None
    names = answer.out.split() if answer.code == 0 else []
    chosen = next((name for name in names if name.endswith("*")), next(iter(names), ""))  # *: the default
    if not chosen:
        return Discovery("sbatch", {})
    partition = chosen.rstrip("*")
    return Discovery(f"sbatch, partition {partition}", {"partition": partition})
