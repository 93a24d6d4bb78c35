"""Decides at submission how the parameters of a job are written as options, key by key.

The script's parser decides, as far as its source tells; `style:` of the file stands over it. A style that the
parser would refuse is an error here, before anything is submitted. What the source does not tell stays open:
a worker learns it from the first usage error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from textwrap import shorten
from typing import Any

from hostler.errors import SpecError
from hostler.spec import space
from hostler.spec.inputs import inputs_of, with_paths
from hostler.spec.job import Job
from hostler.spec.nearest import nearest
from hostler.spec.params import flatten
from hostler.spec.parsers.option import Declarations, Option
from hostler.spec.project import Project
from hostler.spec.scalars import text
from hostler.spec.style import Form, Style, in_words, same_key

PATH = "path"  # in place of what a parameter takes from another run
LOOKED_AT = 64  # listed runs, and choices of a parameter, that are looked at
HYDRAS_OWN = frozenset({"config_name", "config_path", "config_dir"})  # these it takes as --key value
SAMPLED = 8  # runs of a space, for what its choices do not show: values that are computed from others


def settled(job: Job, project: Project) -> Job:
    """The job with the form of each of its parameters. Code that machines fetch from git is not read."""
    if job.style != "flags":
        return job
    every = _values(job)
    values = _written(every, job)
    if project.git is not None or not values:
        return replace(job, forms=project.forms)
    declared = _declared(job, project)
    if declared.hydra and project.forms == Style() and not {same_key(key) for key in every} & HYDRAS_OWN:
        return replace(job, style="hydra")
    if declared.pairs and not declared.options and project.forms == Style():
        return replace(job, style="equals")
    _check_keys(project.forms, every, declared)
    general = project.forms.general.over(declared.general)
    forms = dict[str, Form]()
    for key, some in values.items():
        form, taken = _form(key, some, project.forms, declared), _is_taken(key, job)
        if not taken and (option := declared.find(key)):
            _check_placed(key, some, option, job)
            _check_values(key, some, form, option)
        forms[key] = replace(form, declared=True) if taken else form
    own = {key: form for key, form in forms.items() if form != general}
    return replace(job, forms=Style(general).given(own))


def lines(job: Job) -> Iterator[str]:
    """How its parameters are written, for a person; nothing where all are --key VALUE."""
    if job.style == "hydra":
        yield "options: key=value, as Hydra reads them"
    if job.style == "equals":
        yield "options: key=value"
    if job.style != "flags":
        return
    written = _written(_values(job), job).items()
    told = [in_words(key, _concerning(job.forms.of(key), some)) for key, some in written]
    if any(told):
        yield f"options: {'; '.join(filter(None, told))}"


def _concerning(form: Form, values: list[Any]) -> Form:
    """The words of a form for these values."""
    if not any(isinstance(value, bool) for value in values):
        form = replace(form, booleans="", true=None, false=None)
    return form if _has_list(values) else replace(form, lists="")


def declared_style(job: Job, project: Project, keys: Mapping[str, Any]) -> Style:
    """The forms of these keys by the script alone, for a command that a person typed."""
    declared = _declared(job, project)
    forms = {key: option.form for key in flatten(keys) if (option := declared.find(key))}
    return Style(declared.general).given(forms)


def _declared(job: Job, project: Project) -> Declarations:
    from hostler.spec.parsers.declarations import declarations  # a command as typed has no need of it

    return declarations(job.command, project.root / job.cwd, project.root)


def _values(job: Job) -> dict[str, list[Any]]:
    """Parameters by dotted key, each with a value of every kind that it has: true, false, null, lists of each
    length, another."""
    values: dict[str, dict[Any, Any]] = {}
    for params in _some(job):
        paths = {one.key: PATH for one in inputs_of(params)}  # what they are when a run starts
        for key, value in flatten(with_paths(params, paths)).items():
            values.setdefault(key, {}).setdefault(_kind(value), value)
    return {key: list(kinds.values()) for key, kinds in values.items()}


def _kind(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (list, tuple)):
        return ("list", len(value), any(isinstance(item, (list, tuple)) for item in value))
    return (value,) if value is None or isinstance(value, bool) else ()


def _written(values: Mapping[str, list[Any]], job: Job) -> dict[str, list[Any]]:
    """Those that are written as options, or as a list in the command's own words."""
    return {key: some for key, some in values.items() if not _is_taken(key, job) or _has_list(some)}


def _is_taken(key: str, job: Job) -> bool:
    """Whether the command takes a parameter, or the table that it is in, by a placeholder."""
    words, parts = " ".join((*job.command, *job.resume)), key.split(".")
    return any(f"{{{'.'.join(parts[:n])}}}" in words for n in range(1, len(parts) + 1))


def _has_list(values: list[Any]) -> bool:
    return any(isinstance(value, (list, tuple)) for value in values)


def _some(job: Job) -> Iterator[Mapping[str, Any]]:
    """Parameters of runs from all over the job, then each choice of its spaces by itself."""
    is_listed = not all(isinstance(one.space, space.Space) for one in job.rounds)
    step = max(1, job.count // (LOOKED_AT if is_listed or not job.rounds else SAMPLED))
    yield from (job.params(index) for index in range(0, job.count, step))
    if job.count:
        yield job.params(job.count - 1)
    searched = space.from_json(job.search) if job.search else None
    if searched:
        yield dict.fromkeys(searched.keys)
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
        read = Form(lists=declared.read_lists.get(same_key(key), "") if _has_list(values) else "")
        return replace(asked.over(declared.general.over(read)), declared=not unknown)
    _check(key, values, own, option, declared)
    form = option.form.over(declared.general)
    if asked.booleans and asked.booleans != form.booleans:
        form = replace(form, true=None, false=None)
    elif form.booleans == "value" and not any(isinstance(v, bool) for v in values):
        form = replace(form, booleans="", true=None, false=None)
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


def _check_keys(own: Style, values: Mapping[str, Any], declared: Declarations) -> None:
    """Refuse a key of `style.keys` that is nearly a parameter or an option. Any other unknown one may be for
    another script of the project."""
    known = {same_key(key) for key in values} | {same_key(option.dest) for option in declared.options}
    for key in own.keys:
        near = nearest(key, known - own.keys.keys(), 1)
        if near and key not in known and not declared.find(key):
            raise SpecError(f"style.keys: no parameter or option is {key!r}", f"did you mean {near[0]!r}?")


def _check_placed(key: str, values: list[Any], option: Option, job: Job) -> None:
    if not option.names and any(value is not None for value in values):
        raise SpecError(
            f"{key}: {option.said}",
            f"write {{{key}}} where it belongs in the command: {' '.join(job.command)} {{{key}}}",
        )


def _check_values(key: str, values: list[Any], form: Form, option: Option) -> None:
    """Refuse values that the parser would refuse, or take for something else."""
    if option.accepts is None:
        return
    least, most = option.counts or (0, None)
    for value in values:
        if value is None or isinstance(value, bool):
            continue
        words = _given(value, form, most)
        if option.is_flag:
            hint = "say true or false"
        elif _has_list([word for some in words for word in some]) and not option.nests:
            hint = "put plain values into it"
            if "json" in option.accepts:
                hint += f", or pass it as JSON: style: {{keys: {{{key}: {{lists: json}}}}}}"
        elif isinstance(value, (list, tuple)) and option.is_single and not form.lists and len(value) != 1:
            how = f"say how the script reads a list: style: {{keys: {{{key}: {{lists: comma}}}}}}, or json"
            hint = how if "comma" in option.accepts else "give it one number"
        elif isinstance(value, (list, tuple)) and not form.lists:
            continue  # a usage error will tell its form
        elif all(least <= len(some) <= (len(some) if most is None else most) for some in words):
            continue
        else:
            hint = f"give it {least} values" if least > 1 else "give it a value, or null to leave it out"
        raise SpecError(f"{key}: {shorten(text(value), 60)}, but {option.said}", hint)


def _given(value: Any, form: Form, most: int | None) -> list[list[Any]]:
    """The values of each time that the option is given, which takes so many at most."""
    if not isinstance(value, (list, tuple)) or form.lists == "json":
        return [[""]]
    if form.lists == "repeat":
        return [list(item) if isinstance(item, (list, tuple)) and most != 1 else [item] for item in value]
    return [[item] for item in value] if form.lists in ("comma", "joined") else [list(value)]


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
