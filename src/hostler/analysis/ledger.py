"""Values that were defaults when a run was made, from the project's ledger (`records/defaults.py`)."""

from __future__ import annotations

from collections.abc import Callable

from hostler.analysis.said import Say
from hostler.analysis.sheet import Sheet, put
from hostler.errors import DamagedError, NewerFormatError
from hostler.records import defaults
from hostler.spec.job import Job
from hostler.store import Store


def filler(store: Store, say: Say) -> Callable[[Job, Sheet], None]:
    """Fills in, for each run, the parameters it was not given: as the defaults were when it started."""
    known: defaults.History = ()
    try:
        known = defaults.history(store)
    except (DamagedError, NewerFormatError) as error:
        say(f"no defaults are filled in: {error}")

    def fill(job: Job, made: Sheet) -> None:
        if not known:
            return
        for row, (index, started) in enumerate(zip(made.facts["index"], made.facts["started"], strict=True)):
            if started == started and started is not None:
                values = defaults.at(known, job.command_of(int(index)), float(started))
                for name, value in values.items():
                    put(made, row, name, value)

    return fill
