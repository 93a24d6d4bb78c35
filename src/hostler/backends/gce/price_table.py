"""Google's prices as facts of a day: read from the table that comes with hostler, or from a person's own.

The form is a line for each machine or GPU; `gce_prices.txt` says it at its top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from hostler.errors import UsageError

OWN = Path(__file__).parent / "gce_prices.txt"


@dataclass(frozen=True)
class Rate:
    """In one region: which zones have it, and what it costs an hour; None where it is not sold so."""

    zones: str  # their letters
    on_demand: float | None
    spot: float | None


@dataclass(frozen=True)
class Kind:
    """A machine type, or a GPU."""

    name: str
    vcpus: float = 0.0
    memory: float = 0.0  # GiB
    rates: Mapping[str, Rate] = field(default_factory=dict)  # region → rate


@dataclass(frozen=True)
class Table:
    date: str
    machines: Mapping[str, Kind]
    gpus: Mapping[str, Kind]


@lru_cache(maxsize=2)
def load(path: Path = OWN) -> Table:
    """The table of a file; UsageError with its line where it is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not text"
        raise UsageError(f"{path}: {why}", hint="HOSTLER_PRICES names a table of prices") from None
    date, machines, gpus = "", dict[str, Kind](), dict[str, Kind]()
    for n, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if words[0] == "date":
                date = words[1]
            elif words[0] == "machine":
                vcpus, memory = float(words[2]), float(words[3])
                machines[words[1]] = Kind(words[1], vcpus, memory, _rates(words[4:]))
            elif words[0] == "gpu":
                gpus[words[1]] = Kind(words[1], rates=_rates(words[2:]))
            else:
                raise ValueError(f"{words[0]!r} is neither machine, gpu nor date")
        except (ValueError, IndexError) as error:
            raise UsageError(f"{path}:{n}: {error}", hint=f"the form is that of {OWN.name}") from None
    return Table(date, machines, gpus)


def _rates(words: Iterable[str]) -> dict[str, Rate]:
    found = {}
    for word in words:
        region, zones, on_demand, spot = word.split(":")
        found[region] = Rate(zones, _price(on_demand), _price(spot))
    return found


def _price(text: str) -> float | None:
    if text == "-":
        return None
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text} is not a price")
    return value
