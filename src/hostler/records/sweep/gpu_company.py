"""Company for runs that hardly use their GPU: how many could share one, and the measured rate of both ways.

Ends of runs tell how much of a GPU each had and used, and its steps in a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.sweep.ends import EndReader
from hostler.spec.states import DONE
from hostler.store import Store

QUIET = 15.0  # percent of the time: who computes less on its GPU leaves room for others
PART = 0.25  # of a GPU, that such a run is offered
FILLED = 0.9  # of that part's memory, that a run may have used
READ = 24  # ends that are looked at, the newest runs


@dataclass(frozen=True)
class GpuCompany:
    """Use of a GPU by a run that has it alone; rates are steps in a second, None where nobody measured."""

    use: float  # percent of the time
    used: float  # bytes
    memory: float  # bytes that the GPU has
    alone: float | None = None
    shared: float | None = None  # of one run that shares its GPU
    share: float = PART  # that it then has

    @property
    def line(self) -> str:
        """The offer, in words."""
        whole, part = self.memory / 1e9, self.used / 1e9
        text = f"a run computes {self.use:.2g} % of the time on its GPU, and "
        text += f"uses {part:.2g} of its {whole:.3g} GB"
        offer = f"`resources: {{gpus: {PART:g}}}` puts {round(1 / PART)} on one"
        return f"{text}: {offer}; {self._rates}"

    @property
    def _rates(self) -> str:
        first = "alone" if self.alone is None else f"alone {self.alone:.3g} steps/s"
        if self.shared is None:
            return f"{first}, in company not measured yet"
        return f"{first}, in company {self.shared:.3g} steps/s each, {self.shared / self.share:.3g} together"


def of_sweep(store: Store, sweep: str) -> GpuCompany | None:
    """The offer that a sweep gets by its newest ends."""
    reader = EndReader(store, sweep)
    names = sorted(reader.names())[-READ:]
    return offer(reader.update(names).values()) if names else None


def offer(ends: Iterable[Record]) -> GpuCompany | None:
    """None where runs use their GPU, or fill its memory, or none had one alone. Pure."""
    known = [end["gpu"] for end in ends if end.get("state") == DONE and end.get("gpu")]
    alone = [gpu for gpu in known if gpu.get("share") == 1 and gpu.get("use") is not None]
    if not alone or not min(float(gpu.get("memory") or 0) for gpu in alone):
        return None
    use, used = _mean(gpu["use"] for gpu in alone), max(float(gpu.get("used") or 0) for gpu in alone)
    memory = min(float(gpu["memory"]) for gpu in alone)
    if use > QUIET or used > FILLED * PART * memory:
        return None
    others = [gpu for gpu in known if 0 < (gpu.get("share") or 0) < 1]
    share = _mean(gpu["share"] for gpu in others) if others else PART
    return GpuCompany(use, used, memory, _rate(alone), _rate(others), share)


def of_run(gpu: Mapping[str, Any]) -> str:
    """The offer for the log of one run that is done; '' where it gets none."""
    company = offer([{"state": DONE, "gpu": gpu}])
    return company.line if company else ""


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def _rate(found: Sequence[Mapping[str, Any]]) -> float | None:
    rates = [float(gpu["rate"]) for gpu in found if gpu.get("rate")]
    return _mean(rates) if rates else None
