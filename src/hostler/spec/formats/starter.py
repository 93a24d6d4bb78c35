"""experiment-starter's job file: `job_details` and a grid of `parameters` with LIST axes.

The grid is ours as it stands. A text that stands for a list is read as that list; any other value that is
not a list is one value, whatever it looks like. `wandb` of the details is the tracker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import Document, Path
from hostler.spec.formats import list_text
from hostler.spec.formats.foreign import Foreign
from hostler.spec.space import parse
from hostler.spec.space.group import is_list

TOOL = "experiment-starter"
PROGRAM = ("python", "train.py", "{params_file}")  # it reads a file of parameters, as YAML

_READ = ("name", "wandb", "wandb_project_name")
_WHY = {"output_dir": "runs are kept in the store; hostler pull NAME --follow --to {value} shows them there"}


def is_it(value: Any) -> bool:
    return isinstance(value, Mapping) and "job_details" in value and "parameters" in value


def read(document: Document, stem: str) -> Foreign:
    details, given = document.value["job_details"] or {}, document.value["parameters"]
    if not isinstance(details, Mapping):
        raise SpecError(f"job_details: {details!r} is not a table", where=document.where(("job_details",)))
    notes = [
        f"job_details.{key}: {_WHY.get(key, 'not carried over').format(value=value)}"
        for key, value in details.items()
        if key not in _READ
    ]
    notes += [
        f"{key}: not carried over" for key in document.value if key not in ("job_details", "parameters")
    ]
    parameters = _table(given, document, ("parameters",)) if isinstance(given, Mapping) else given
    sweep = {"name": str(details.get("name") or stem), "method": "grid", "parameters": parameters}
    places: dict[Path, Path] = {("name",): ("job_details", "name")}
    if details.get("wandb"):
        project = details.get("wandb_project_name")
        sweep["trackers"] = {"wandb": {} if project is None else {"project": str(project)}}
        places["trackers",] = ("job_details", "wandb")
    results = str(details.get("output_dir") or "results")
    return Foreign(TOOL, sweep, _count(parameters), tuple(notes), places, results, PROGRAM)


def _table(given: Mapping[str, Any], document: Document, path: Path) -> dict[str, Any]:
    return {str(key): _entry(str(key), value, document, (*path, key)) for key, value in given.items()}


def _entry(key: str, value: Any, document: Document, path: Path) -> Any:
    if is_list(key, value) and isinstance(value, list):
        return [
            _table(one, document, (*path, n)) if isinstance(one, Mapping) else one
            for n, one in enumerate(value)
        ]
    if is_list(key, value) and isinstance(value, Mapping):
        return _table(value, document, path)
    if isinstance(value, str) and list_text.stands_for_list(value):
        return _listed(key, value, document, path)
    return {"value": dict(value)} if isinstance(value, Mapping) else value


def _listed(key: str, text: str, document: Document, path: Path) -> list[Any]:
    try:
        values = list_text.read(text)
    except ValueError as error:
        raise SpecError(f"{key}: {error}", list_text.HINT, where=document.where(path)) from None
    if not values:
        raise SpecError(f"{key}: {text} has no values", where=document.where(path))
    return values


def _count(parameters: Any) -> int | None:
    """Cells of the product there, where equal values of a list are two; None if it is not a grid."""
    count = 1
    for key, value in parameters.items() if isinstance(parameters, Mapping) else ():
        try:
            listed = parse({key: value}).count if is_list(key, value) else None
        except SpecError:
            return None
        count *= listed or (len(value) if isinstance(value, list) else 1)
    return count
