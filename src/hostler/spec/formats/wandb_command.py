"""The command of a Weights & Biases sweep with its macros, as ours."""

from __future__ import annotations

import re
import shlex
from typing import Any

from hostler.errors import SpecError
from hostler.spec.yaml12 import Document

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
            found += _words(text, document, notes)
    if style == "none":
        notes.append("no ${args} in the command: the script finds its parameters in $HOSTLER_PARAMS")
    return {"command": found, **({} if style == "flags" else {"style": style})}


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
        notes.append("${args_json}: the command gets the name of a JSON file instead of its text")
        return ["{params_file}"]
    if macro == "${args_no_boolean_flags}":
        notes.append("${args_no_boolean_flags}: true is written --key true, false --key false")
    if not last:
        notes.append(f"{macro}: parameters come after all other words of the command")
    return []


def _words(text: str, document: Document, notes: list[str]) -> list[str]:
    if text == "${program}":
        return [_program(document)]
    if text == "${interpreter}":
        return ["python"]
    for name in _VARIABLE.findall(text):
        notes.append(f"${{envvar:{name}}}: no shell reads the command; give the value itself")
    text = text.replace("${program}", document.value.get("program", "")).replace("${interpreter}", "python")
    return [text]


def _program(document: Document) -> str:
    program = document.value.get("program")
    if not isinstance(program, str) or not program:
        where = document.where(("command",))
        raise SpecError("command: ${program}, and the file names no program", where=where)
    return program
