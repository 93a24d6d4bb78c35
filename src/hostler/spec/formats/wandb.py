"""A sweep file of Weights & Biases: method, metric, parameters, command, early termination."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import Document, Path
from hostler.spec.formats.foreign import Foreign
from hostler.spec.formats.wandb_parameter import Parameter, parameter
from hostler.spec.nearest import did_you_mean
from hostler.spec.ranking import GOALS

TOOL = "Weights & Biases"

METHODS = {"grid": "grid", "random": "random", "bayes": "tpe"}
UNCAPPED = 100  # runs, where the file names no number and the search would go on for ever

_OURS = ("name", "method", "metric", "parameters", "command", "program", "early_terminate", "run_cap")
_ONLY_THEIRS = ("program", "early_terminate", "run_cap", "entity", "controller", "image_uri")
_UNUSED = ("entity", "project", "description", "controller", "image_uri", "job", "schedule")


def is_it(value: Any) -> bool:
    """By what only they have: a file without any of it is read the same as ours."""
    if not isinstance(value, Mapping) or not isinstance(value.get("parameters"), Mapping):
        return False
    command = value.get("command")
    return (
        any(key in value for key in _ONLY_THEIRS)
        or (_speaks_theirs(value) and all(key in _OURS + _UNUSED for key in value))
        or (isinstance(command, list) and any("${" in str(word) for word in command))
        or any(_is_theirs(one) for one in value["parameters"].values())
    )


def _speaks_theirs(value: Mapping[str, Any]) -> bool:
    """Whether method or goal are called as they call them, and each parameter is a table."""
    metric = value.get("metric")
    table = metric if isinstance(metric, Mapping) else {}
    words = value.get("method") == "bayes" or table.get("goal") in ("minimize", "maximize")
    tables = all(isinstance(one, Mapping) for one in value["parameters"].values())
    return words and tables and "of" not in table


def _is_theirs(one: Any) -> bool:
    return isinstance(one, Mapping) and ("distribution" in one or isinstance(one.get("parameters"), Mapping))


def read(document: Document, stem: str) -> Foreign:
    value = document.value
    notes = [f"{key}: not carried over" for key in value if key not in _OURS]
    for key in value:
        if key not in _OURS and key not in _UNUSED:
            raise SpecError(
                f"no such key {key!r}", did_you_mean(key, [*_OURS, *_UNUSED]), where=document.where((key,))
            )
    method = _method(document)
    if value.get("method") == "bayes":
        notes.append("method: bayes there is a Gaussian process; here tpe (method: gp is one)")
    places: dict[Path, Path] = {("budget", "runs"): ("run_cap",)}
    parameters, counts = {}, []
    for path, key, found in _parameters(document, value["parameters"], ("parameters",), ""):
        parameters[key] = found.ours
        counts.append(found.count)
        places[("parameters", key)] = path
        notes += found.notes
    sweep: dict[str, Any] = {"name": str(value.get("name") or stem)}
    sweep |= command_of(document, notes)
    sweep |= _metric(document, notes)
    sweep |= {"method": method, "parameters": parameters}
    sweep |= _prune(document, notes)
    cap = value.get("run_cap")
    runs = _runs(method, counts, cap)
    if cap is not None:
        sweep["budget"] = {"runs": cap}
    elif runs is None:
        sweep["budget"] = {"runs": UNCAPPED}
        notes.append(f"no run_cap: there it goes on until it is stopped; here budget.runs is {UNCAPPED}")
    return Foreign(TOOL, sweep, runs, tuple(dict.fromkeys(notes)), places)


def _method(document: Document) -> str:
    method = document.value.get("method", "grid")
    if not isinstance(method, str) or method not in METHODS:
        hint = did_you_mean(str(method), METHODS, f"one of {', '.join(METHODS)}")
        raise SpecError(f"method: {method!r} cannot be carried over", hint, where=document.where(("method",)))
    return METHODS[method]


def _parameters(
    document: Document, table: Mapping[str, Any], path: Path, prefix: str
) -> Iterator[tuple[Path, str, Parameter]]:
    for name, given in table.items():
        at = (*path, name)
        if isinstance(given, Mapping) and isinstance(given.get("parameters"), Mapping):
            yield from _parameters(document, given["parameters"], (*at, "parameters"), f"{prefix}{name}.")
        else:
            try:
                yield at, f"{prefix}{name}", parameter(f"{prefix}{name}", given, document.value.get("method"))
            except ValueError as error:
                raise SpecError(f"{prefix}{name}: {error}", where=document.where(at)) from None


def _metric(document: Document, notes: list[str]) -> dict[str, Any]:
    metric = document.value.get("metric")
    if metric is None:
        return {}
    if not isinstance(metric, Mapping) or "name" not in metric:
        raise SpecError("metric: needs a name", where=document.where(("metric",)))
    goal = metric.get("goal", "minimize")
    if not isinstance(goal, str) or goal not in GOALS:
        raise SpecError(
            f"metric.goal: {goal!r} is not minimize or maximize", where=document.where(("metric", "goal"))
        )
    notes += [f"metric.{key}: not carried over" for key in metric if key not in ("name", "goal")]
    return {"metric": {"name": metric["name"], "goal": GOALS[goal]}}


def _prune(document: Document, notes: list[str]) -> dict[str, Any]:
    early_terminate = document.value.get("early_terminate")
    if early_terminate is None:
        return {}
    where = document.where(("early_terminate",))
    if not isinstance(early_terminate, Mapping) or early_terminate.get("type") not in (
        "hyperband",
        "envelope",
    ):
        raise SpecError(f"early_terminate: {early_terminate!r} is not of type hyperband", where=where)
    if early_terminate["type"] == "envelope":
        notes.append("early_terminate: envelope is not carried over")
        return {}
    eta, last, first = (
        early_terminate.get("eta", 3),
        early_terminate.get("max_iter"),
        early_terminate.get("min_iter"),
    )
    for name, value, least in (("eta", eta, 2), ("max_iter", last, 1), ("min_iter", first, 1)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            at = document.where(("early_terminate", name))
            text = f"early_terminate.{name}: {value!r} is not a whole number above {least - 1}"
            raise SpecError(text, where=at)
    if first is None:
        if last is None or not isinstance(early_terminate.get("s"), int) or early_terminate["s"] < 0:
            raise SpecError("early_terminate: needs min_iter, or max_iter and s", where=where)
        first = max(1, round(last / eta ** early_terminate["s"]))
    notes.append("early_terminate: hyperband there stops runs at min_iter · eta^k; asha does here")
    return {"prune": {"method": "asha", "min": first, "factor": eta, **({"max": last} if last else {})}}


def _runs(method: str, counts: list[int | None], cap: Any) -> int | None:
    """How many runs there would be there."""
    known = [count for count in counts if count is not None]
    total = math.prod(known) if method == "grid" and len(known) == len(counts) else None
    if not isinstance(cap, int):
        return total
    return cap if total is None else min(cap, total)


# The command of a Weights & Biases sweep with its macros, as ours.


_DEFAULT = ["${env}", "${interpreter}", "${program}", "${args}"]
_ARGS: dict[str, Any] = {
    "${args}": "flags",
    "${args_no_hyphens}": "equals",
    "${args_no_boolean_flags}": {"booleans": "bare"},
    "${args_json}": "json",
    "${args_json_file}": "json",
}
_VARIABLE = re.compile(r"\$\{envvar:(\w+)\}")


def command_of(document: Document, notes: list[str]) -> dict[str, Any]:
    """`command` and `style`; nothing if the file names no program."""
    value = document.value
    command = value.get("command")
    if command is None and "program" not in value:
        return {}
    words = _DEFAULT if command is None else _listed(command, document)
    found: list[str] = []
    style: Any = "none"
    for n, word in enumerate(words):
        text = str(word)
        if text in _ARGS:
            style = _ARGS[text]
            found += _arguments(text, notes, last=n == len(words) - 1)
        elif text != "${env}":
            found += _words(text, document)
    if style == "none":
        notes.append("no ${args} in the command: the script finds its parameters in $HOSTLER_PARAMS")
    from hostler.spec.formats import withheld  # with many patterns, for a file of theirs alone

    notes += [
        f"{where} is kept in the store: write ${{envvar:{name}}} in the command, and {name} under `secrets`"
        for name, where in withheld.withhold(shlex.join(found)).names.items()
    ]
    return {"command": _with_variables(found), **({} if style == "flags" else {"style": style})}


def _listed(given: Any, document: Document) -> list[Any]:
    try:
        words = shlex.split(given) if isinstance(given, str) else given
    except ValueError as error:
        raise SpecError(f"command: {error}", where=document.where(("command",))) from None
    if not isinstance(words, list) or not words:
        raise SpecError(f"command: {given!r} is not a list of words", where=document.where(("command",)))
    return words


def _arguments(macro: str, notes: list[str], *, last: bool) -> list[str]:
    if macro == "${args_json_file}":
        return ["{params_file}"]
    if macro == "${args_json}":
        return ["{params_json}"]
    if not last:
        notes.append(f"{macro}: parameters come after all other words of the command")
    return []


def _words(text: str, document: Document) -> list[str]:
    if text == "${program}":
        return [_program(document)]
    if text == "${interpreter}":
        return ["python"]
    if "${program}" in text:
        text = text.replace("${program}", _program(document))
    return [text.replace("${interpreter}", "python")]


def _with_variables(words: list[str]) -> list[str]:
    """Variables are read where the run is: by a shell, which gets all other words as they are."""
    if not any(_VARIABLE.search(word) for word in words):
        return words
    plain = [word for word in words if not _VARIABLE.search(word)]
    names = iter(f"hostler_{n}" for n in range(len(plain)))
    kept = [f'"${next(names)}"' if word in plain else _quoted(word) for word in words]
    taken = [f"hostler_{n}=$1; shift" for n in range(len(plain))]
    return ["sh", "-c", "; ".join([*taken, f'exec {" ".join(kept)} "$@"']), "sh", *plain]


def _quoted(word: str) -> str:
    """A shell word in which only variables are expanded; an unset one is an error."""
    parts = _VARIABLE.split(word)
    plain = [part if n % 2 else shlex.quote(part) if part else "" for n, part in enumerate(parts)]
    return "".join(f'"${{{part}?is not set}}"' if n % 2 else part for n, part in enumerate(plain))


def _program(document: Document) -> str:
    program = document.value.get("program")
    if not isinstance(program, str) or not program:
        where = document.where(("command",))
        raise SpecError("command: ${program} needs a program, and the file names none", where=where)
    return program
