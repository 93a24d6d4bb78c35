"""hostler.yaml to a Project, every key checked; the only importer of pydantic.

The keys of fleets are their backends': whoever parses brings them along (`backends/project_file.py`).

An unknown key, a wrong type or an impossible value is a SpecError of one line with file, line and key.
A key without a value counts as not given. Defaults are those of the dataclasses in job.py and project.py.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from hostler import env
from hostler.errors import MissingError, NewerFormatError, SpecError
from hostler.spec import job, project, ranking, resume, style, tracking, units
from hostler.spec.files import entries, tracking_words
from hostler.spec.files.complaint import complaint
from hostler.spec.files.otherwords import said_here
from hostler.spec.files.yaml12 import Document, load, load_all
from hostler.spec.names import place_of_data
from hostler.spec.nearest import did_you_mean

FORMAT = 1

_Kind = TypeVar("_Kind")
_Model = TypeVar("_Model", bound=BaseModel)
_Given = TypeVar("_Given", bound="_ProjectTable")
Kinds = Mapping[str, "type[FleetKeys]"]  # the keys of each backend's fleets


def load_project(path: Path, kinds: Kinds) -> project.Project:
    """The project a file describes; its folder is the project's root."""
    path = path.absolute()
    return parse_project(read_document(path), path.parent, kinds)


def read_document(path: Path) -> Document:
    """The YAML or JSON of a file, with its lines."""
    return load(_read(path), _shown(path))


def read_documents(path: Path) -> list[Document]:
    """All documents of a YAML file, which `---` parts; empty ones are left out."""
    return load_all(_read(path), _shown(path))


def parse_project(document: Document, root: Path, kinds: Kinds) -> project.Project:
    return over(
        checked(document, with_fleets(_ProjectTable, named(document, kinds))), project.default_project(root)
    )


def with_fleets(model: type[_Given], kinds: Kinds) -> type[_Given]:
    """The model with fleets of these backends, each checked by its own keys."""
    return _with_fleets(model, tuple(kinds.values()))


def named(document: Document, kinds: Kinds) -> Kinds:
    """The kinds of fleets that a file speaks of: a model of all takes longer than all else of
    reading. All of them where it names one that is not known, as the complaint is about all then."""
    fleets = document.value.get("fleets") if isinstance(document.value, dict) else None
    tables = list(fleets.values()) if isinstance(fleets, dict) else [] if fleets is None else [None]
    words = {table.get("backend") if isinstance(table, dict) else None for table in tables}
    if not all(isinstance(word, str) and word in kinds for word in words):
        return kinds
    least = words | set(list(kinds)[:2])  # a choice is one of several
    return {name: kinds[name] for name in kinds if name in least}


@lru_cache(maxsize=16)
def _with_fleets(model: type[_Given], kinds: tuple[type[FleetKeys], ...]) -> type[_Given]:
    fleet: Any = Annotated[Union[kinds], Field(discriminator="backend")]  # noqa: UP007
    fields: Any = {"fleets": (dict[Part, fleet] | None, None)}
    made: type[_Given] = create_model(model.__name__, __base__=model, **fields)
    return made


@env.without_plugins()  # models are built when they are first used
def checked(document: Document, model: type[_Model]) -> _Model:
    """The document as this model; SpecError with the line of the first thing that is wrong."""
    value = {} if document.value is None else document.value
    if not isinstance(value, dict):
        raise SpecError("not a table (key: value)", where=document.where())
    _check_format(document, value)
    written = {k: _as_written(v, (k,), document) if k in _AS_WRITTEN else v for k, v in value.items()}
    try:
        return model.model_validate(written)
    except ValidationError as error:
        raise complaint(document, error.errors(include_url=False)) from None


def schema(kinds: Kinds) -> dict[str, Any]:
    """JSON schema of hostler.yaml, for editors."""
    return {**with_fleets(_ProjectTable, kinds).model_json_schema(), "title": "hostler.yaml"}


# A version 1.10 or an id 007 here means the text as it stands in the file.
_AS_WRITTEN = frozenset({"name", "command", "resume", "setup", "env", "tags"})


def _as_written(value: Any, path: tuple[str | int, ...], document: Document) -> Any:
    if isinstance(value, dict):
        return {k: _as_written(v, (*path, k), document) for k, v in value.items()}
    if isinstance(value, list):
        return [_as_written(v, (*path, i), document) for i, v in enumerate(value)]
    return document.texts.get(path, value)


_ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_NUMBER_OR_TEXT = {"type": ["number", "string"]}

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(entries.listed), WithJsonSchema(_ONE_OR_MORE)]
Lines = Annotated[tuple[str, ...], BeforeValidator(entries.lines), WithJsonSchema(_ONE_OR_MORE)]
Loose = Annotated[str, BeforeValidator(entries.as_text), WithJsonSchema({})]
Words = Annotated[tuple[str, ...], BeforeValidator(entries.words), WithJsonSchema(_ONE_OR_MORE)]
Alternatives = Annotated[
    tuple[tuple[str, ...], ...],
    BeforeValidator(entries.alternatives),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": _ONE_OR_MORE}]}),
]
Variable = Annotated[str, AfterValidator(entries.variable)]
Variables = Annotated[tuple[Variable, ...], BeforeValidator(entries.listed), WithJsonSchema(_ONE_OR_MORE)]
Output = Annotated[Text, AfterValidator(entries.output_path)]
Outputs = Annotated[tuple[Output, ...], BeforeValidator(entries.outputs), WithJsonSchema(_ONE_OR_MORE)]
Part = Annotated[str, AfterValidator(entries.name_part)]
Seconds = Annotated[float, BeforeValidator(units.duration), Field(gt=0), WithJsonSchema(_NUMBER_OR_TEXT)]
Bytes = Annotated[int, BeforeValidator(units.size), Field(gt=0), WithJsonSchema(_NUMBER_OR_TEXT)]
Disk = Annotated[int, BeforeValidator(entries.disk), WithJsonSchema(_NUMBER_OR_TEXT)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Bound = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Spot = Annotated[bool | str, BeforeValidator(entries.spot), WithJsonSchema({"enum": [True, False, "prefer"]})]
Metrics = Annotated[
    job.MetricSource,
    BeforeValidator(entries.metric_source),
    WithJsonSchema({"anyOf": [{"enum": ["json", "none"]}, {"type": "object", "required": ["pattern"]}]}),
]
Trackers = Annotated[
    Any,
    BeforeValidator(tracking_words.parse),
    WithJsonSchema({"anyOf": [{"enum": list(tracking.OPTIONS)}, {"type": ["array", "object"]}]}),
]
Port = Annotated[int, Field(ge=1, le=65535)]
AnyCount = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[Texts, Field(min_length=1)]
Gpu = Annotated[str, AfterValidator(entries.gpu)]
Gpus = Annotated[str | tuple[str, ...], BeforeValidator(entries.gpus), WithJsonSchema(_ONE_OR_MORE)]
CpuBound = Annotated[str, BeforeValidator(entries.cpu_bound), WithJsonSchema(_NUMBER_OR_TEXT)]
MemoryBound = Annotated[str, BeforeValidator(entries.memory_bound), WithJsonSchema(_NUMBER_OR_TEXT)]
Volumes = Annotated[Any, BeforeValidator(entries.volumes)]
Git = Annotated[project.GitSource, BeforeValidator(entries.git_source), WithJsonSchema({"type": "string"})]


class _Table(BaseModel):
    # Built when a file has such a table: those of fleets and data are in few.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = list(cls.model_fields)
        for key in value:
            if key not in known:
                listed = f"keys: {', '.join(known)}" if len(known) < 12 else ""
                hint = said_here(key, known) or did_you_mean(key, known, listed)
                raise PydanticCustomError("unknown_key", "no such key", {"key": key, "hint": hint})
        return {k: v for k, v in value.items() if v is not None}


class _ResourcesTable(_Table):
    cpus: Amount | None = None
    gpus: Amount | None = None
    gpu_memory: Bytes | None = None
    memory: Bytes | None = None
    nodes: Count | None = None
    procs_per_node: Count | None = None
    min_nodes: Count | None = None

    @model_validator(mode="after")
    def _no_fewer_than_asked(self) -> _ResourcesTable:
        if self.min_nodes and self.nodes and self.min_nodes > self.nodes:
            raise _at(
                "min_nodes",
                f"is more than nodes ({self.nodes})",
                "nodes is the largest number that train together",
            )
        return self


class _LimitsTable(_Table):
    time: Seconds | None = None
    hang: Seconds | None = None
    start: Seconds | None = None
    failures: Count | None = None


class _CheckpointTable(_Table):
    every: Seconds | None = None
    keep: Count | None = None
    keep_every: Seconds | None = None


class _NotifyTable(_Table):
    to: Variables | None = None
    on: (
        Annotated[tuple[Literal["finished", "failed", "cap"], ...], BeforeValidator(entries.listed)] | None
    ) = None
    quiet: Annotated[Text, AfterValidator(entries.quiet_hours)] | None = None
    limit: Count | None = None


class _Python(_Table):
    requirements: Text | None = None
    conda: Text | None = None
    conda_env: Text | None = None
    venv: Text | None = None
    exe: Text | None = None

    @model_validator(mode="after")
    def _at_most_one(self) -> _Python:
        kinds = self.model_fields_set - ({"requirements"} if self.conda is None else set())
        if len(kinds) > 1:
            raise ValueError(f"{', '.join(sorted(kinds))} cannot be combined")
        return self


class _DataTable(_Table):
    path: Text | None = None
    url: Annotated[str, AfterValidator(entries.data_url)] | None = None
    run: Words | None = None
    out: Text | None = None
    at: Annotated[Text, AfterValidator(place_of_data)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> _DataTable:
        if len(self.model_fields_set & {"path", "url", "run"}) != 1:
            raise ValueError("give a path, a url, or run and out")
        if (self.run is None) != (self.out is None):
            raise ValueError("run and out go together: the command, and the folder it leaves")
        return self


Data = Annotated[
    _DataTable, BeforeValidator(entries.data_source), WithJsonSchema({"type": ["string", "object"]})
]


class FleetKeys(_Table):
    """Keys of every fleet; a platform's `keys.py` adds its own, and `backend`."""

    counted: ClassVar[bool] = False  # its `workers` are all there are; else as many as a run takes

    workers: Count | None = None
    runs_per_worker: Count | None = None
    slots: Count | None = None
    cache: Text | None = None
    price: Amount | None = None
    max_cost: Bound | None = None
    max_hours: Bound | None = None
    resources: _ResourcesTable | None = None


class _FormTable(_Table):
    booleans: Literal[style.BOOLEANS] | None = None  # type: ignore[valid-type]
    lists: Literal[style.LISTS] | None = None  # type: ignore[valid-type]
    assign: Literal[style.ASSIGN] | None = None  # type: ignore[valid-type]


class _StyleForms(_FormTable):
    keys: dict[Text, _FormTable] | None = None  # where a script mixes


_StyleWord = Annotated[Literal["flags", "equals", "hydra", "json", "env", "none"], Tag("word")]
_StyleTable = Annotated[_StyleForms, Tag("table")]


def _style_kind(value: Any) -> str:
    return "table" if isinstance(value, (dict, _StyleForms)) else "word"


Goal = Annotated[
    Literal["max", "min"], BeforeValidator(entries.goal), WithJsonSchema({"enum": list(ranking.GOALS)})
]
_Rule = Annotated[str, BeforeValidator(ranking.rule), WithJsonSchema({})]


class _MetricTable(_Table):
    name: Text
    goal: Goal | None = None
    of: _Rule | None = None


Metric = Annotated[_MetricTable, BeforeValidator(entries.metric), WithJsonSchema({})]


class _ProjectTable(_Table):
    format: Amount | None = None
    version: Amount | None = None
    name: Annotated[Text, BeforeValidator(entries.as_text)] | None = None
    command: Words | None = None
    resume: Alternatives | None = None
    style: Annotated[_StyleWord | _StyleTable, Discriminator(_style_kind)] | None = None
    setup: Words | None = None
    python: _Python | None = None
    env: dict[Variable, Loose] | None = None
    secrets: Variables | None = None
    store: Text | None = None
    metric: Metric | None = None
    goal: Goal | None = None
    resources: _ResourcesTable | None = None
    distributed: Literal["torch", "tensorflow", "jax"] | None = None
    limits: _LimitsTable | None = None
    checkpoint: _CheckpointTable | None = None
    retries: Annotated[int, Field(ge=0)] | None = None
    data: dict[Part, Data] | None = None
    outputs: Outputs | None = None
    metrics: Metrics | None = None
    trackers: Trackers | None = None
    tags: Texts | None = None
    notify: _NotifyTable | None = None
    fleet: Text | None = None
    fleets: dict[Part, FleetKeys] | None = None  # `with_fleets` has each checked by its backend's keys
    cache: Text | None = None
    git: Git | None = None
    git_token: Variable | None = None
    priority: int | None = None
    warm: bool | Literal["strict"] | None = None
    pack: Seconds | None = None

    @model_validator(mode="after")
    def _names_exist(self) -> _ProjectTable:
        if self.git_token and not self.git:
            raise _at("git_token", "needs git:, which is missing")
        known = ["local", *(self.fleets or {})]
        for name in self.fleet.split(",") if self.fleet else []:
            if name.strip() not in known:
                raise _at("fleet", f"no fleet named {name.strip()!r}", did_you_mean(name.strip(), known))
        return self


def _at(key: str, message: str, hint: str = "") -> PydanticCustomError:
    return PydanticCustomError("at_key", "{message}", {"key": key, "hint": hint, "message": message})


_TABLES = frozenset({"python", "resources", "limits", "checkpoint", "notify"})
# Keys whose value in the file is not the one of the same name in a Project.
_OTHER_FORM = frozenset(
    {"format", "version", "store", "metric", "resume", "style", "data", "fleets", "git", "git_token"}
)


@env.without_plugins()
def over(given: _ProjectTable, base: project.Project, but: Collection[str] = ()) -> project.Project:
    """The project with what is given here over it, `but` these keys: tables key by key, the rest whole."""
    keys = given.model_fields_set & _ProjectTable.model_fields.keys() - set(but)
    record: dict[str, Any] = {k: getattr(given, k) for k in keys - _OTHER_FORM - set(_TABLES)}
    for key in keys & _TABLES:
        record[key] = replace(getattr(base, key), **getattr(given, key).model_dump(exclude_unset=True))
    if "retries" in record:
        record["retries_given"] = True
    if given.env:
        record["env"] = {**base.env, **given.env}
    if given.style:
        word = given.style if isinstance(given.style, str) else "flags"
        forms = _forms(given.style) if isinstance(given.style, _StyleForms) else style.Style()
        record |= {"style": word, "forms": forms}
    if "metric" in keys and given.metric:
        record |= {"metric": given.metric.name, "of": given.metric.of or base.of}
        record |= {"goal": given.metric.goal} if given.metric.goal else {}
    if given.store:
        record["store"] = entries.store_place(given.store, base.root)
    if given.resume:
        first, *others = given.resume
        record |= {"resume": first, "resume_whole": resume.is_whole_command(first)}
        record |= {"resume_else": tuple(others)}
    if given.data:
        named = {k: project.DataEntry(k, **v.model_dump(exclude_unset=True)) for k, v in given.data.items()}
        record["data"] = {**base.data, **named}
    if given.outputs is not None:
        record["collect"] = bool(given.outputs)
    if given.fleets:
        nodes = record.get("resources", base.resources).nodes
        fleets = {name: _fleet(name, fleet, nodes) for name, fleet in given.fleets.items()}
        record["fleets"] = {**base.fleets, **fleets}
    if given.trackers:
        record["trackers"] = tracking_words.at(given.trackers, base.root)
    if given.git:
        record["git"] = replace(given.git, token_secret=given.git_token)
    return replace(base, **record)


def _forms(given: _StyleForms) -> style.Style:
    table = given.model_dump(exclude_unset=True)
    keys = {key: style.Form(**form) for key, form in table.pop("keys", {}).items()}
    return style.Style(style.Form(**table)).given(keys)


def _fleet(name: str, given: FleetKeys, nodes: int) -> project.Fleet:
    own = given.model_dump(exclude_unset=True)
    shared = {k: own.pop(k) for k in ("backend", *FleetKeys.model_fields) if k in own}
    if given.counted:
        shared.setdefault("workers", nodes)
    if given.resources:
        shared["resources"] = _plain(job.Resources, given.resources)
    return project.Fleet(name=name, **shared, options=own)


def _plain(kind: type[_Kind], table: BaseModel) -> _Kind:
    return kind(**table.model_dump(exclude_unset=True))


def _check_format(document: Document, value: Mapping[str, Any]) -> None:
    """Before anything else: the keys of a newer file are not mistakes."""
    for key in ("format", "version"):
        number = value.get(key)
        if isinstance(number, (int, float)) and number >= FORMAT + 1:
            raise NewerFormatError(
                f"{document.where((key,))}: {key} {number} is newer than this hostler, which reads {FORMAT}",
                hint="upgrade hostler: pip install -U hostler",
            )


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise MissingError(f"{_shown(path)} does not exist", hint="hostler init makes one") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SpecError("not UTF-8 text", where=f"{_shown(path)}:{line}") from None
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror}", where=_shown(path)) from None


def _shown(path: Path) -> str:
    """As a person would type it from here."""
    here = os.path.relpath(path)
    return str(path) if here.startswith("..") else here
