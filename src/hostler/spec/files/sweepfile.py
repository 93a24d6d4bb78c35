"""A sweep file (YAML or JSON) to frozen data, every key checked.

It may hold any key of hostler.yaml, which then stands over the project's, and those of a sweep: what to
vary, how to search, what to look at, how much it may take. Errors are SpecErrors of one line with file,
line and key. What `parameters` mean is `space.py`'s.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from hostler.errors import SpecError, UsageError
from hostler.frozen import dataclass
from hostler.spec.files import parse
from hostler.spec.files.parse import Count
from hostler.spec.files.yaml12 import Document, Path
from hostler.spec.formats.reading import as_ours
from hostler.spec.job import Budget, Objective
from hostler.spec.methods import METHODS, PRUNERS
from hostler.spec.nearest import did_you_mean
from hostler.spec.project import Project
from hostler.spec.ranking import KEPT

SCRIPTS = (".py", ".sh", ".ipynb")
AUTO = "auto"
NO_COMMAND = "no command here or in hostler.yaml"


@dataclass(frozen=True)
class SweepFile:
    """A sweep file, read; `project` is the project with the file's own keys over it."""

    name: str  # any text
    project: Project
    parameters: dict[str, Any]
    method: str = "grid"
    repeat: Any = 1  # 3, {seed: 3} or {seed: [1, 7, 9]}
    sections: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0
    objectives: tuple[Objective, ...] = ()
    prune: dict[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    parallel: int | None = None
    auto: bool = False  # `parallel: auto`
    together: int | None = None  # runs in one process at most; 1: each has its own; None: the trainer says
    path: pathlib.Path = pathlib.Path("sweep.yaml")  # absolute
    document: Document | None = None  # for the lines of later complaints
    notes: tuple[str, ...] = ()  # what a person should know: of another tool's file, what is not as it was
    results: str = ""  # folder in which people look for the runs of another tool's file

    def where(self, path: Path = ()) -> str:
        """`file:line` of a key."""
        return self.document.where(path) if self.document else ""


def load_sweep(
    path: pathlib.Path,
    project: Project,
    kinds: parse.Kinds,
    *,
    commanded: bool = True,
    program: tuple[str, ...] | None = None,
) -> SweepFile:
    """The sweep a file describes, in this project; files of other tools are read as ours. `commanded`: it
    must have a command, which those leave to the project; `program` is it where neither names one."""
    path = path.absolute()
    if path.suffix in SCRIPTS:
        raise UsageError(
            f"{path.name} is a script, and a sweep is a YAML file",
            hint=f"hostler run {path.name} runs it once; hostler init writes a sweep file",
        )
    document, foreign = as_ours(parse.read_document(path), path.stem)
    if foreign is not None and foreign.program and (project.root / foreign.program[1]).is_file():
        program = program or foreign.program
    given = document.value if isinstance(document.value, dict) else {}
    if program and project.command is None and "command" not in given:
        project = replace(project, command=program, style="json")
    sweep = parse_sweep(document, project, path, kinds, commanded=commanded)
    if foreign is None:
        return sweep
    if sweep.project.command == program:
        sweep = replace(sweep, parameters={"output_dir": foreign.results, **sweep.parameters})
    return replace(sweep, notes=(*sweep.notes, *foreign.notes), results=foreign.results)


def parse_sweep(
    document: Document, project: Project, path: pathlib.Path, kinds: parse.Kinds, *, commanded: bool = True
) -> SweepFile:
    """The file's name is the sweep's if it gives none."""
    table = parse.checked(document, parse.with_fleets(_SweepTable, parse.named(document, kinds)))
    objectives = _objectives(table, project)
    merged = parse.over(table, project, but=("name", "metric", "goal"))
    if objectives:
        first = objectives[0]
        merged = replace(merged, metric=first.name, goal=first.goal, of=first.of)
    if merged.command is None and commanded:
        raise SpecError(NO_COMMAND, "command: python train.py", where=document.where())
    return SweepFile(
        name=table.name or path.stem,
        project=merged,
        parameters=dict(table.parameters),
        method=table.method or "grid",
        repeat=1 if table.repeat is None else table.repeat,
        sections=tuple(table.sections or ()),
        seed=table.seed or 0,
        objectives=objectives,
        prune=table.prune or {},
        budget=Budget(**table.budget.model_dump(exclude_unset=True)) if table.budget else Budget(),
        parallel=None if isinstance(table.parallel, str) else table.parallel,
        auto=table.parallel == AUTO,
        together=1 if table.together is False else None if table.together is True else table.together,
        path=path,
        document=document,
        notes=() if merged.command else (f"{NO_COMMAND}: without one nothing can be submitted",),
    )


def schema(kinds: parse.Kinds) -> dict[str, Any]:
    """JSON schema of a sweep file, for editors."""
    return {**parse.with_fleets(_SweepTable, kinds).model_json_schema(), "title": "sweep.yaml"}


def _objectives(given: _SweepTable, project: Project) -> tuple[Objective, ...]:
    """The metrics to look at, the most important first; the project's if the file names none."""
    goal = given.goal or project.goal
    if given.metric:
        return tuple(Objective(table.name, table.goal or goal, table.of or KEPT) for table in given.metric)
    return (Objective(project.metric, goal, project.of),) if project.metric else ()


def _several(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _method(value: Any) -> Any:
    if value == "bayes":  # as W&B calls it
        raise ValueError("bayes is not a method here: use tpe, or gp for a Gaussian process")
    return value


def _pruner(value: Any) -> Any:
    """'asha' or {'method': 'asha', …}: what else it takes is the pruner's own."""
    table = {"method": value} if isinstance(value, str) else value
    method = table.get("method") if isinstance(table, dict) else None
    if method not in PRUNERS:
        hint = did_you_mean(str(method), PRUNERS, f"one of {', '.join(PRUNERS)}")
        raise ValueError(f"{method or value!r} is not a way of pruning ({hint})")
    return table


class _BudgetTable(parse._Table):
    runs: Count | None = None
    hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


def _together(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, int) and value > 0):
        return value
    raise ValueError(f"{value!r} is not true, false or how many at most (1 or more)")


def _parallel(value: object) -> object:
    if value != AUTO and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{value!r} is neither a number of runs nor auto")
    if isinstance(value, int) and value < 1:
        raise ValueError("must be at least 1")
    return value


_Anything = WithJsonSchema({})


class _SweepTable(parse._ProjectTable):
    metric: Annotated[list[parse.Metric], BeforeValidator(_several), _Anything] | None = None  # type: ignore[assignment]
    method: Annotated[Literal[METHODS], BeforeValidator(_method)] | None = None  # type: ignore[valid-type]
    parameters: dict[str, Any]
    sections: list[dict[str, Any]] | None = None
    repeat: Any = None
    seed: Annotated[int, Field(ge=0)] | None = None
    prune: Annotated[dict[str, Any], BeforeValidator(_pruner), _Anything] | None = None
    budget: _BudgetTable | None = None
    parallel: Annotated[Count | Literal["auto"], BeforeValidator(_parallel)] | None = None
    together: Annotated[bool | Count, BeforeValidator(_together)] | None = None

    @model_validator(mode="after")
    def _names_exist(self) -> _SweepTable:
        """Fleets may be the project's: whoever launches knows them."""
        return self
