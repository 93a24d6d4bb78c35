"""The tools that an assistant sees: name, arguments, and what answers. A call becomes the words of a verb,
or a reading of the store. Pure: nothing is run or read here.

Every word of an assistant stands behind `=` or `--`, so that none of them is taken for an option. A file of a
call lies in the project's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from hostler.cli.assistants import answers
from hostler.errors import MissingError, UsageError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.spec.states import ALL

LINES = 100  # of a log, unless more are asked for
POINTS = 100  # of a curve
MOST = 1000  # rows, lines or points of one answer

Given = Mapping[str, Any]
_JSON: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "file": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "flag": {"type": "boolean"},
    "count": {"type": "integer", "minimum": 1, "maximum": MOST},
}
_KINDS: dict[str, type] = {"text": str, "file": str, "texts": list, "flag": bool, "count": int}


@dataclass(frozen=True)
class Argument:
    kind: str  # of `_JSON`
    about: str
    required: bool = False
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        return {
            **_JSON[self.kind],
            "description": self.about,
            **({"enum": list(self.choices)} if self.choices else {}),
        }


@dataclass(frozen=True)
class Tool:
    """`verb`: the words of a verb for a call; without one, `reading.py` answers."""

    name: str
    about: str
    arguments: Mapping[str, Argument]
    verb: Callable[[Given], list[str]] | None = None
    action: bool = False  # it changes something: only with --allow-actions
    without: tuple[str, ...] = field(default=())  # parts of the answer that are left out

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: argument.schema() for name, argument in self.arguments.items()},
            "required": [name for name, one in self.arguments.items() if one.required],
            "additionalProperties": False,
        }

    def checked(self, given: Given, root: Path) -> Given:
        """The arguments of a call; UsageError says which is wrong."""
        for name in given:
            if name not in self.arguments:
                hint = did_you_mean(name, self.arguments, f"known: {', '.join(self.arguments) or 'none'}")
                raise UsageError(f"{self.name} has no argument {name!r}", hint=hint)
        for name, argument in self.arguments.items():
            if name in given:
                _check(f"{self.name}: {name}", argument, given[name])
            elif argument.required:
                raise UsageError(f"{self.name} needs the argument {name!r}", hint=argument.about)
        files = {name for name, one in self.arguments.items() if one.kind == "file" and name in given}
        return {name: _inside(root, value) if name in files else value for name, value in given.items()}


def _check(name: str, one: Argument, value: Any) -> None:
    kind = _KINDS[one.kind]
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not fits or (kind is list and not all(isinstance(part, str) for part in value)):
        raise UsageError(f"{name} is {value!r:.60}, and not a {_word(one.kind)}")
    texts = value if kind is list else [value] if kind is str else []
    if one.required and kind in (str, list) and not (texts and all(text.strip() for text in texts)):
        raise UsageError(f"{name} is empty", hint=one.about)
    if kind is int and not 1 <= value <= MOST:
        raise UsageError(f"{name} is {value}, and not between 1 and {MOST}")
    if one.choices and value not in one.choices:
        raise UsageError(f"{name} is {value!r:.60}", hint=f"one of: {', '.join(one.choices)}")
    if any("\0" in text for text in texts):
        raise UsageError(f"{name} holds a letter that no name has")


def _word(kind: str) -> str:
    return {"texts": "list of texts", "flag": "true or false", "count": "whole number"}.get(kind, "text")


def _inside(root: Path, name: str) -> str:
    """The path of a file of the project; links are followed before it is judged."""
    try:
        path = (root / name).resolve()
        if not path.is_relative_to(root.resolve()):
            raise UsageError(
                f"{name!r:.200} is outside the project", hint="only its own files can be asked for"
            )
        if not path.is_file():
            raise MissingError(
                f"{name!r:.200} is not a file of the project", hint="a path from its folder on"
            )
    except OSError as error:
        raise UsageError(f"{name!r:.200} cannot be read: {error.strerror}") from None
    return str(path.relative_to(root.resolve()))


def _options(given: Given, **names: str) -> list[str]:
    """Arguments as options of a verb, each with its value behind `=`."""
    options = []
    for name, option in names.items():
        value = given.get(name)
        if isinstance(value, bool):
            options += [option] if value else []
        elif value is not None:
            options += [f"{option}={part}" for part in (value if isinstance(value, list) else [value])]
    return options


def _names(given: Given) -> list[str]:
    return ["--", *given.get("names", [])]


def _best(given: Given) -> list[str]:
    return ["best", "--json", *_options(given, metric="--metric", top="--top"), "--", given["sweep"]]


def _plan(given: Given) -> list[str]:
    return ["plan", "--json", *_options(given, on="--on"), "--", given["file"]]


def _simulate(given: Given) -> list[str]:
    named = {
        name: f"--{name.replace('_', '-')}" for name in ("on", "preempt", "run_time", "checkpoint", "whole")
    }
    options = _options(given, **named)
    return ["simulate", "--json", *options, "--", given["file"]]


RUN = Argument("text", "a run: SWEEP/INDEX, its id, or the name of a sweep of one run", required=True)
NAMES = Argument("texts", "sweeps or runs; all if none is named")
CHOSEN = Argument("texts", "sweeps or runs", required=True)
FILE = Argument("file", "a sweep file, as a path from the project's folder on", required=True)
FLEET = Argument("text", "a fleet of hostler.yaml; by default the project's")
LIMIT = Argument("count", f"how many at most; {answers.ROWS} unless told")

TOOLS = (
    Tool(
        "list_sweeps",
        "Sweeps of the store: how many runs are in which state, time left, the best value.",
        {"limit": LIMIT},
        lambda given: ["status", "--sweeps", "--json"],
    ),
    Tool(
        "list_runs",
        "Runs with state, parameters, last metrics, host, cost.",
        {
            "names": NAMES,
            "state": Argument("text", "only runs in this state", choices=tuple(ALL)),
            "tag": Argument("text", "only runs with this tag"),
            "limit": LIMIT,
        },
        lambda given: ["status", "--json", *_options(given, state="--state", tag="--tag"), *_names(given)],
    ),
    Tool(
        "show_run",
        "Everything about one run: command, attempts, checkpoints, outputs, code, failure.",
        {"run": RUN},
        lambda given: ["show", "--json", "--", given["run"]],
        without=("environment", "events"),
    ),
    Tool(
        "read_metrics",
        "Metrics of a run: last, least and greatest value, and the curve as [step, value].",
        {
            "run": RUN,
            "metrics": Argument("texts", "names; all but the machine's own unless told"),
            "points": Argument("count", f"points of each curve at most; {POINTS} unless told"),
        },
    ),
    Tool(
        "read_logs",
        "The last lines that a run printed.",
        {
            "run": RUN,
            "lines": Argument("count", f"how many at most; {LINES} unless told"),
            "grep": Argument("text", "only lines that match this regular expression"),
            "attempt": Argument("count", "only this attempt"),
        },
        lambda given: [
            "logs",
            "--json",
            f"--tail={given.get('lines', LINES)}",
            *_options(given, grep="--grep", attempt="--attempt"),
            "--",
            given["run"],
        ],
    ),
    Tool(
        "read_errors",
        "Failures, grouped by kind and place, with a traceback and advice for each.",
        {
            "names": NAMES,
            "all": Argument("flag", "also errors of attempts that were repeated"),
            "limit": LIMIT,
        },
        lambda given: ["errors", "--json", *_options(given, all="--all"), *_names(given)],
    ),
    Tool(
        "read_costs",
        "What sweeps, fleets and runs have cost, and what is left of budgets.",
        {"names": Argument("texts", "sweeps, runs or fleets; all if none is named")},
        lambda given: ["cost", "--json", *_names(given)],
    ),
    Tool(
        "best_runs",
        "The best runs of a sweep by its metric, or by another.",
        {
            "sweep": Argument("text", "a sweep", required=True),
            "metric": Argument("text", "another metric than the sweep's"),
            "top": Argument("count", "how many; 1 unless told"),
        },
        _best,
    ),
    Tool(
        "compare_runs",
        "What differs between two runs: parameters, command, code, packages, machine, results.",
        {"a": RUN, "b": RUN},
        lambda given: ["diff", "--json", "--", given["a"], given["b"]],
    ),
    Tool("list_files", "Files that a run has left, with their sizes.", {"run": RUN, "limit": LIMIT}),
    Tool(
        "read_file",
        "A text file that a run has left.",
        {"run": RUN, "file": Argument("text", "its name, as list_files gives it", required=True)},
    ),
    Tool(
        "plan",
        "What a sweep file would do: how many runs, which are new, the price.",
        {"file": FILE, "on": FLEET},
        _plan,
    ),
    Tool(
        "simulate",
        "A sweep's cost and time, estimated on a virtual clock. Nothing is started.",
        {
            "file": FILE,
            "on": Argument("texts", "fleets to compare; by default the project's"),
            "preempt": Argument("text", "rate at which machines are taken away: 5%/h"),
            "run_time": Argument("text", "duration of one run: 40m, or 30m-1h; else as earlier runs took"),
            "checkpoint": Argument("text", "intervals to compare: 5m,15m,1h"),
            "whole": Argument("flag", "all runs of the file, also those that are done"),
        },
        _simulate,
    ),
    Tool(
        "submit",
        "Submit a sweep file, or what is new in it, and start workers. This costs what the answer's price "
        "says, within the budget of the file and the caps of the fleet. Call plan first.",
        {"file": FILE, "on": FLEET},
        lambda given: ["sweep", "--yes", "--json", *_options(given, on="--on"), "--", given["file"]],
        action=True,
    ),
    Tool(
        "stop",
        "Have runs save and end; they can be resumed.",
        {"names": CHOSEN},
        lambda given: ["stop", "--json", *_names(given)],
        action=True,
    ),
    Tool(
        "retry",
        "Try failed, diverged or lost runs again with today's code, and start workers. The answer's notes "
        "have the price.",
        {"names": CHOSEN, "on": FLEET},
        lambda given: ["retry", "--yes", "--json", *_options(given, on="--on"), *_names(given)],
        action=True,
    ),
)


def named(name: str, *, actions: bool) -> Tool:
    """The tool of a name; UsageError if there is none, or if it acts and may not."""
    tool = next((one for one in TOOLS if one.name == name), None)
    if tool is None:
        raise UsageError(
            f"no tool named {name!r:.60}",
            hint=did_you_mean(name, [one.name for one in TOOLS], "tools/list has all"),
        )
    if tool.action and not actions:
        raise UsageError(
            f"{name} is not allowed here", hint="a person may start `hostler mcp --allow-actions`"
        )
    return tool
