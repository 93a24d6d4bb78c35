"""Inputs from other runs: parameters that are `{best-of: SWEEP}` or `{run: RUN}`, and `--init-from`.

Such a parameter is a value like any other until the run starts; then it is the path of what it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.job import Job
from hostler.spec.reference import BEST, FILE, ONLY, RUN, STEP, Step, is_reference, read_step

INIT = "init"  # what `--init-from` names is found under this name among the run's data


@dataclass(frozen=True)
class Input:
    """`key`: the parameter, dotted. `best_of` and `run` are as they were typed, perhaps with `@STEP`."""

    key: str
    best_of: str | None = None
    run: str | None = None
    file: str | None = None
    step: Step | None = None
    only: str | None = None  # "done": a stopped run does not count

    @property
    def shown(self) -> str:
        what = f"the best of {self.best_of}" if self.best_of else str(self.run)
        what = what if self.step is None else f"{what}@{self.step}"
        return f"{self.file} of {what}" if self.file else what


def inputs_of(params: Mapping[str, Any], prefix: str = "") -> Iterator[Input]:
    """The inputs of a run."""
    for key, value in params.items():
        if is_reference(value):
            yield _input(f"{prefix}{key}", value)
        elif isinstance(value, Mapping):
            yield from inputs_of(value, f"{prefix}{key}.")


def _input(key: str, value: Mapping[str, Any]) -> Input:
    step = read_step(value.get(STEP))
    return Input(key, value.get(BEST), value.get(RUN), value.get(FILE), step, value.get(ONLY))


def with_paths(params: Mapping[str, Any], paths: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """The parameters with paths in place of what they named."""
    return {
        key: paths.get(f"{prefix}{key}", value)
        if is_reference(value) or not isinstance(value, Mapping)
        else with_paths(value, paths, f"{prefix}{key}.")
        for key, value in params.items()
    }


def all_inputs(job: Job) -> frozenset[Input]:
    """Everything that some run of a sweep takes, without its key and file."""
    runs = [] if job.rounds or job.search else list(job.runs)
    found = _inside([*(one.space.source for one in job.rounds), dict(job.search), *runs, dict(job.init)])
    return frozenset(replace(_input("", record), file=None) for record in found)


def _inside(value: Any) -> Iterator[Mapping[str, Any]]:
    if is_reference(value):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _inside(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _inside(inner)
