"""Every time and size that is a choice, in one place; tests and sites override them by environment.

`Timing` of a project (beat, lease) is fixed when the project's record is made, because all its
workers must agree; the rest is each process's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace

from hostler.errors import UsageError
from hostler.frozen import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds. HOSTLER_<NAME> in the environment overrides each."""

    beat: float = 10.0  # between two heartbeats of a worker
    lease: float = 60.0  # a heartbeat that stands still this long is a lost worker
    flush: float = 30.0  # between two fragments of log or metrics, at first; grows with the run's age
    flush_max: float = 30.0  # and never more than this
    poll: float = 0.2  # between two looks at a local process
    idle: float = 300.0  # a billed or shared machine with nothing to do waits this long
    wait_min: float = 0.2  # first wait of a worker that found nothing
    wait_max: float = 10.0  # longest wait of a worker that found nothing
    fresh: float = 1.0  # a run is not taken by what a worker knew of its sweep longer ago than this
    grace: float = 30.0  # from a stop request to SIGKILL
    settle: float = 2.0  # a checkpoint file younger than this may still be written to
    usage: float = 10.0  # between two samples of CPU, memory and GPU
    retry: float = 30.0  # how long a request is retried before the store counts as unreachable
    storeless: float = 1800.0  # a worker whose store has not answered so long leaves
    gather: float = 600.0  # how long the workers of one run are waited for
    connect: float = 10.0  # a machine that does not answer by then counts as down
    restart_min: float = 0.2  # first wait before a killed worker is started again
    restart_max: float = 30.0
    machines: float = 600.0  # a cloud's machines that have not come by then are given up
    stockout: float = 45.0  # a region that says it has none left so long: another is tried
    report: float = 900.0  # a machine of a cloud that runs and has not reported by then is given up
    imaging: float = 3600.0  # so long after its time limit the build of an image counts as given up
    cap_margin: float = 180.0  # a money cap is reached so long before its money is: machines end late
    tracker: float = 60.0  # what a run leaves to tracking tools is waited for so long, after its end
    account: float = 30.0  # between two notes of a worker of how long it has been there
    gc_grace: float = 86400.0  # `hostler gc` leaves what was written to the store later than this ago
    finished: float = 600.0  # a finished Job of Kubernetes is kept so long, for its logs


@dataclass(frozen=True)
class Sizes:
    """Bytes, counts and one price. HOSTLER_<NAME> in the environment overrides each."""

    snapshot_max: float = 512e6  # larger code snapshots are refused
    snapshot_files: float = 20000
    unpacked_max: float = 1e12  # an archive that holds more bytes is not unpacked
    unpacked_files: float = 5e6  # nor one of more files, folders and links
    unpacked_ratio: float = 200  # nor one that grows by more than this, beyond 100 MB
    outputs_max: float = 1e9  # files that a run's script makes in its working folder are kept up to this
    result_end: float = 64e3  # a function's result is part of its run's end up to this, else a file
    result_max: float = 100e6  # and larger ones are not kept
    still_max: float = 64e6  # a checkpoint folder that never rests is copied between two saves up to this
    disk_min: float = 2e8  # less free disk than this refuses to start
    busy_load: float = 0.3  # processors in use for a minute: a machine for hand work is used
    disk_price: float = 0.1  # of a GB of a VM's disk for a month, in dollars
    image_price: float = 0.05  # of a GB of an image for a month, in dollars


IN_BYTES = (
    "snapshot_max",
    "unpacked_max",
    "outputs_max",
    "still_max",
    "result_end",
    "result_max",
    "disk_min",
)

ONE_MACHINE = {"beat": 1.0, "lease": 15.0, "flush": 0.5, "flush_max": 10.0, "wait_max": 1.0}


NETWORK_FOLDER = {"beat": 10.0, "lease": 180.0, "flush": 5.0}


def timing(*, one_machine: bool = False) -> Timing:
    """Defaults, those for one machine if asked, and the environment over both."""
    base = replace(Timing(), **ONE_MACHINE) if one_machine else Timing()
    return replace(base, **_from_environment([f.name for f in fields(Timing)]))


def network_folder() -> dict[str, float]:
    """Times where an absent answer may be a minute old, and an object costs nothing; the environment over
    them."""
    return {**NETWORK_FOLDER, **_from_environment(list(NETWORK_FOLDER))}


def sizes() -> Sizes:
    return replace(Sizes(), **_from_environment([f.name for f in fields(Sizes)]))


def names() -> list[str]:
    """The variables that override settings."""
    return [f"HOSTLER_{f.name.upper()}" for kind in (Timing, Sizes) for f in fields(kind)]


def given() -> dict[str, str]:
    """The variables that override a setting here, for workers elsewhere."""
    return {name: os.environ[name] for name in names() if name in os.environ}


def choose(**times: float) -> None:
    """Set these for this process and every process it starts, unless the environment does already."""
    for name, value in times.items():
        os.environ.setdefault(f"HOSTLER_{name.upper()}", str(value))


def _from_environment(names: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    if not any(name.startswith("HOSTLER_") for name in os.environ):
        return found
    for name in names:
        text = os.environ.get(f"HOSTLER_{name.upper()}")
        if text:
            try:
                found[name] = float(text)
            except ValueError:
                amount = _with_unit(text, _units(name))
                if amount is None:
                    raise UsageError(
                        f"HOSTLER_{name.upper()}={text!r} is not a number",
                        hint="for example 10, in seconds or bytes",
                    ) from None
                found[name] = amount
    return found


def _units(name: str) -> dict[str, float]:
    """Units of a setting, in small letters: 5m of a time, 5MB and 5MiB of a size; others have none."""
    if name in IN_BYTES:
        powers = {f"{letter}{end}": n for n, letter in enumerate("kmgt", 1) for end in ("", "b", "i", "ib")}
        return {"b": 1.0, **{unit: (1024.0 if "i" in unit else 1000.0) ** n for unit, n in powers.items()}}
    is_time = name in (f.name for f in fields(Timing))
    return {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0} if is_time else {}


def _with_unit(text: str, units: Mapping[str, float]) -> float | None:
    """The sum of 1h30m or 5MB; None if that is not what the text is."""
    part = r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]+)\s*"
    parts = [(float(number), units.get(unit.lower())) for number, unit in re.findall(part, text)]
    if not re.fullmatch(f"(?:{part})+", text) or any(scale is None for _, scale in parts):
        return None
    return sum(number * (scale or 0.0) for number, scale in parts)
