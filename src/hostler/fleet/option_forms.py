"""Decides at submission how the parameters of a job are written as options, key by key.

The script's parser decides, as far as its source tells; `style:` of the file stands over it. A style that the
parser would refuse is an error here, before anything is submitted. What the source does not tell stays open:
a worker learns it from the first usage error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from hostler.errors import SpecError
from hostler.spec import space
from hostler.spec.job import Job
from hostler.spec.params import flatten
from hostler.spec.parsers.option import Declarations, Option
from hostler.spec.project import Project
from hostler.spec.style import Form, Style, in_words, same_key

LOOKED_AT = 64  # runs, and choices of a parameter, that are looked at


def settled(job: Job, project: Project) -> Job:
    """The job with the form of each of its parameters. Code that machines fetch from git is not read."""
    if job.style != "flags":
        return job
    values = _values(job)
    if project.git is not None or not values:
        return replace(job, forms=project.forms)
    declared = _declared(job, project)
    general = project.forms.general.over(declared.general)
    forms = {key: _form(key, some, project.forms, declared) for key, some in values.items()}
    forms = {
        key: replace(form, declared=True) if _is_taken(key, job) else form for key, form in forms.items()
    }
    own = {key: form for key, form in forms.items() if form != general}
    return replace(job, forms=Style(general).given(own))


def lines(job: Job) -> Iterator[str]:
    """How its parameters are written, for a person; nothing where all are --key VALUE."""
    if job.style != "flags":
        return
    told = [(key, in_words(key, job.forms.of(key))) for key in _values(job)]
    if any(text for _, text in told):
        yield f"options: {'; '.join(text for _, text in told if text)}"


def declared_style(job: Job, project: Project, keys: Mapping[str, Any]) -> Style:
    """The forms of these keys by the script alone, for a command that a person typed."""
    declared = _declared(job, project)
    found = {key: option.form for key in flatten(keys) if (option := declared.find(key))}
    return Style(declared.general).given(found)


def _declared(job: Job, project: Project) -> Declarations:
    from hostler.spec.parsers.declarations import declarations  # a command as typed has no need of it

    return declarations(job.command, project.root / job.cwd, project.root)


def _values(job: Job) -> dict[str, list[Any]]:
    """Parameters by dotted key, each with a value of every kind that it has: true, false, a list, another.
    Without those that the command takes."""
    values: dict[str, dict[Any, Any]] = {}
    for params in _some(job):
        for key, value in flatten(params).items():
            kind = value if isinstance(value, bool) else isinstance(value, (list, tuple)) and "list"
            values.setdefault(key, {}).setdefault((type(value) is bool, kind), value)
    some = {key: list(kinds.values()) for key, kinds in values.items()}
    return {key: held for key, held in some.items() if not _is_taken(key, job) or _has_list(held)}


def _is_taken(key: str, job: Job) -> bool:
    """Whether the command takes a parameter, or the table that it is in, by a placeholder."""
    words, parts = " ".join((*job.command, *job.resume)), key.split(".")
    return any(f"{{{'.'.join(parts[:n])}}}" in words for n in range(1, len(parts) + 1))


def _has_list(values: list[Any]) -> bool:
    return any(isinstance(value, (list, tuple)) for value in values)


def _some(job: Job) -> Iterator[Mapping[str, Any]]:
    """Parameters of runs from all over the job, then each choice of its spaces by itself."""
    step = max(1, job.count // LOOKED_AT)
    yield from (job.params(index) for index in range(0, job.count, step))
    if job.count:
        yield job.params(job.count - 1)
    searched = space.from_json(job.search) if job.search else None
    if searched:
        yield dict.fromkeys(searched.keys, "")
    for one in (*(one.space for one in job.rounds), *((searched,) if searched else ())):
        for part in one.parts if isinstance(one, space.Space) else ():
            for dimension in part.dimensions():
                if dimension.key:
                    yield from ({dimension.key: choice} for choice in islice(dimension.choices, LOOKED_AT))


def _form(key: str, values: list[Any], own: Style, declared: Declarations) -> Form:
    """The form of one parameter: the parser's, and over it the file's."""
    option = declared.find(key)
    asked = own.of(key)
    if option is None:
        _check_tied(key, asked, declared)
        unknown = declared.closed and not declared.may_mean(key)
        return replace(asked.over(declared.general), declared=not unknown)
    _check(key, values, own, option, declared)
    form = option.form.over(declared.general)
    if asked.booleans and asked.booleans != form.booleans:
        form = replace(form, true=None, false=None)
    elif form.booleans == "value" and form.true is None and not any(isinstance(v, bool) for v in values):
        form = replace(form, booleans="")
    if form.lists and not _has_list(values):
        form = replace(form, lists="")
    form = asked.over(form)
    return replace(form, option="") if form.option == f"--{key}" else form


def _check(key: str, values: list[Any], own: Style, option: Option, declared: Declarations) -> None:
    _check_tied(key, own.of(key), declared)
    booleans = {value for value in values if isinstance(value, bool)}
    if option.stuck is not None and (not option.stuck) in booleans:
        raise SpecError(
            f"{key}: {str(not option.stuck).lower()}, but {option.said} with default {option.stuck}, "
            "which no option can change",
            f"change the default in the script, or leave {key} out",
        )
    for word, is_used in (("booleans", bool(booleans)), ("lists", _has_list(values))):
        asked = getattr(own.of(key), word)
        if asked and is_used and option.accepts is not None and asked not in option.accepts:
            raise SpecError(
                f"style: {word}: {asked} for {key}, but {option.said}",
                _advice(key, word, own, option),
            )


def _advice(key: str, word: str, own: Style, option: Option) -> str:
    right = getattr(option.form, word)
    if same_key(key) in own.keys and getattr(own.keys[same_key(key)], word):
        return f"leave {word} of {key} out" + (f", or say {right}" if right else "")
    if not right:
        return f"leave {word} out"
    return f"leave {word} out, or style: {{keys: {{{key}: {{{word}: {right}}}}}}}"


def _check_tied(key: str, asked: Form, declared: Declarations) -> None:
    if declared.tied and asked.assign == "space":
        raise SpecError(
            f"style: assign: space for {key}, but {declared.script} reads only --{key}=VALUE",
            "leave assign out, or say equals",
        )
