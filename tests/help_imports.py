"""A verb's `--help` imports its options and click alone: `python tests/help_imports.py [SOURCE]`.

`make lint` runs it. Every verb is asked in a process of its own, forked from one that has imported the entry
point and no verb.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STARTED = frozenset(sys.modules)  # with this interpreter
SOURCE = Path(__file__).resolve().parent.parent / "src" / "hostler"
ALLOWED = {
    "hostler": "the version",
    "hostler.cli": "package",
    "hostler.cli.main": "finds the verb",
    "hostler.cli.overview": "the table of verbs",
    "hostler.cli.options": "options of several verbs; imports a verb's module when it is performed",
    "hostler.env": "whether a shell asks for completions",
    "hostler.errors": "errors that become one line",
    "hostler.private": "imported by env",
    "hostler.terminal": "guards a terminal against what is printed",
    "hostler.spec": "package",
    "hostler.spec.states": "choices of --state",
    "hostler.spec.tracking": "choices of export's tools",
    "hostler.frozen": "imported by spec.tracking",
}
WORKER = {  # its options are read without click, as machines that have only Python start it
    "hostler.worker": "package",
    "hostler.worker.main": "the entry point on machines",
    "hostler.worker.options": "the worker's options",
    "hostler.backends": "package",
    "hostler.backends.registry": "choices of --host",
}


def complaints(source: Path) -> Iterator[str]:
    sys.path.insert(0, str(source.parent))
    main = importlib.import_module("hostler.cli.main")
    for words in _forked(_verbs):
        verb = words[0]
        heading = main.module_of(verb).removesuffix(".verbs")
        allowed = {*ALLOWED, heading, f"{heading}.verbs", *(WORKER if verb == "worker" else ())}
        for module in _forked(_loaded, words):
            if module not in allowed:
                yield f"hostler {' '.join(words)} --help imports {module}"


def _verbs() -> list[list[str]]:
    """All verbs, and the verbs of a verb."""
    main = importlib.import_module("hostler.cli.main")
    found = [(verb, getattr(main.declared(verb), "commands", {})) for verb in main.VERBS]
    return [[verb, *below] for verb, own in found for below in ([], *([name] for name in own))]


def _loaded(words: list[str]) -> list[str]:
    """Modules that `hostler WORDS --help` imports, but Python's own and click's."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.argv = ["hostler", *words, "--help"]
    try:
        sys.modules["hostler.cli.main"].main()
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"{sys.argv} exits with {left.code}") from left
    known = {*sys.stdlib_module_names, "click"}
    return sorted(name for name in set(sys.modules) - STARTED if name.partition(".")[0] not in known)


def _forked(function: Callable[..., Any], *given: Any) -> Any:
    """A function's result, from a fork that what it imports stays in."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, given)


if __name__ == "__main__":
    found = list(complaints(Path(sys.argv[1]) if sys.argv[1:] else SOURCE))
    print("\n".join(found) if found else "No verb's --help imports more than its options.")
    sys.exit(bool(found))
