"""experiment-starter's job file: `job_details` and a grid of `parameters` with LIST axes.

The grid is ours as it stands; a value that is not a list is one value, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import Document
from hostler.spec.formats.foreign import Foreign
from hostler.spec.space import parse
from hostler.spec.space.group import is_list

TOOL = "experiment-starter"

_WHY = {"output_dir": "runs are kept in the store (`store:`)"}


def is_it(value: Any) -> bool:
    return isinstance(value, Mapping) and "job_details" in value and "parameters" in value


def read(document: Document, stem: str) -> Foreign:
    details, given = document.value["job_details"] or {}, document.value["parameters"]
    if not isinstance(details, Mapping):
        raise SpecError(f"job_details: {details!r} is not a table", where=document.where(("job_details",)))
    notes = [f"job_details.{key}: {_WHY.get(key, 'not carried over')}" for key in details if key != "name"]
    notes += [
        f"{key}: not carried over" for key in document.value if key not in ("job_details", "parameters")
    ]
    parameters = _table(given) if isinstance(given, Mapping) else given
    sweep = {"name": str(details.get("name") or stem), "method": "grid", "parameters": parameters}
    return Foreign(TOOL, sweep, _count(parameters), tuple(notes), {("name",): ("job_details", "name")})


def _table(given: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): _entry(str(key), value) for key, value in given.items()}


def _entry(key: str, value: Any) -> Any:
    if is_list(key, value) and isinstance(value, list):
        return [_table(one) if isinstance(one, Mapping) else one for one in value]
    if is_list(key, value) and isinstance(value, Mapping):
        return _table(value)
    return {"value": dict(value)} if isinstance(value, Mapping) else value


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
