"""The command of a Weights & Biases sweep with its macros, as ours."""

from __future__ import annotations

import re
import shlex
from typing import Any

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import Document
from hostler.spec.formats import withheld

_DEFAULT = ["${env}", "${interpreter}", "${program}", "${args}"]
_ARGS = {
    "${args}": "flags",
    "${args_no_hyphens}": "equals",
    "${args_no_boolean_flags}": "flags",
    "${args_json}": "json",
    "${args_json_file}": "json",
}
_VARIABLE = re.compile(r"\$\{envvar:(\w+)\}")


def command_of(document: Document, notes: list[str]) -> dict[str, Any]:
    """`command` and `style`; nothing if the file names no program."""
    value = document.value
    given = value.get("command")
    if given is None and "program" not in value:
        return {}
    words = _DEFAULT if given is None else _listed(given, document)
    found: list[str] = []
    style = "none"
    for n, word in enumerate(words):
        text = str(word)
        if text in _ARGS:
            style = _ARGS[text]
            found += _arguments(text, notes, last=n == len(words) - 1)
        elif text != "${env}":
            found += _words(text, document)
    if style == "none":
        notes.append("no ${args} in the command: the script finds its parameters in $HOSTLER_PARAMS")
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
    if macro == "${args_no_boolean_flags}":
        notes.append("${args_no_boolean_flags}: true is written --key true, false --key false")
    if not last:
        notes.append(f"{macro}: parameters come after all other words of the command")
    return []


def _words(text: str, document: Document) -> list[str]:
    if text == "${program}":
        return [_program(document)]
    if text == "${interpreter}":
        return ["python"]
    text = text.replace("${program}", document.value.get("program", "")).replace("${interpreter}", "python")
    return [text]


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
    """One word of a shell in which nothing but the variables is read; one that is not set is an error."""
    parts = _VARIABLE.split(word)
    plain = [part if n % 2 else shlex.quote(part) if part else "" for n, part in enumerate(parts)]
    return "".join(f'"${{{part}?is not set}}"' if n % 2 else part for n, part in enumerate(plain))


def _program(document: Document) -> str:
    program = document.value.get("program")
    if not isinstance(program, str) or not program:
        where = document.where(("command",))
        raise SpecError("command: ${program}, and the file names no program", where=where)
    return program
