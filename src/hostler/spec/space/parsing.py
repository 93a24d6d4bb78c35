"""A file's `parameters`, `sections`, `repeat` and `method` to a Space; what is impossible is refused here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hostler.errors import NewerFormatError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.spec.reference import BEST, STEP, STEP_HINT, is_reference, names_run
from hostler.spec.space import draw, group, trying
from hostler.spec.space.distribution import DECIDING, WORDS, read_form
from hostler.spec.space.entry import Constant, Normal, SpaceEntry, Table, Values, When, keys_of
from hostler.spec.space.fault import Fault, Path
from hostler.spec.space.grid import grid, is_finite
from hostler.spec.space.order import check_names, ordered
from hostler.spec.space.part import SpacePart
from hostler.spec.space.repeat import Repeat, read_repeat
from hostler.spec.space.space import Space
from hostler.spec.space.value import distinct, plain
from hostler.spec.space.walk import dimensions
from hostler.spec.units import counted

FORMAT = 1
LARGEST = 10_000_000  # runs of one sweep: its indices have seven digits

Where = Callable[[Path], str]


def parse(
    parameters: Mapping[str, Any],
    *,
    method: str = "grid",
    repeat: Any = 1,
    runs: int | None = None,
    seed: int = 0,
    sections: Sequence[Mapping[str, Any]] = (),
    where: Where | None = None,
) -> Space:
    """The space that a file describes. `where` gives file and line of a path from the file's root on.

    `runs` is a budget: of a grid the first are taken, of a random search so many are drawn. `sections` are
    spaces of their own over the same `parameters`, one after the other.
    """
    try:
        space = _parse(parameters, method, repeat, runs, seed, sections)
        if where is not None:
            trying.check(space.parts, method)
        return space
    except Fault as fault:
        if where is None:
            raise
        raise SpecError(fault.message, fault.hint, where=where(fault.path)) from None


def to_json(space: Space) -> dict[str, Any]:
    """The form it was parsed from: small, however many runs there are."""
    return {"format": FORMAT, **space.source}


def from_json(record: Mapping[str, Any]) -> Space:
    if record.get("format", 0) > FORMAT:
        raise NewerFormatError(
            f"this space was written in format {record['format']}, this hostler reads up to {FORMAT}",
            hint="upgrade hostler: pip install -U hostler",
        )
    known = ("method", "repeat", "runs", "seed", "sections")
    return parse(record["parameters"], **{name: record[name] for name in known if name in record})


def _parse(
    parameters: Mapping[str, Any],
    method: str,
    repeat: Any,
    runs: int | None,
    seed: int,
    sections: Sequence[Mapping[str, Any]],
) -> Space:
    tables = _tables(parameters, sections, seed)
    constants = {e.form.key: e.form.value for e in tables[0] if isinstance(e.form, Constant) and not e.when}
    repeats = read_repeat(repeat, constants)
    _check_repeat(repeat, repeats, tables)
    if sections and method not in ("grid", "random"):
        raise Fault(
            ("sections",), f"are for grid and random, not for {method}", hint="use LIST, a choice of tables"
        )
    if not any(tables) and repeats.count == 1:
        raise Fault(("parameters",), "nothing to vary", hint="give parameters, or repeat: 3")
    limit = _limit(runs, repeats, len(tables))
    parts, notes = [], []
    for n, table in enumerate(tables):
        part, note = _part(table, method, limit, _seed_of(seed, n))
        parts.append(part)
        notes += [note] if note else []
    count = repeats.count * sum(part.count for part in parts)
    if count > LARGEST:
        raise Fault(
            ("parameters",),
            f"{count:,} runs; at most {LARGEST:,} are allowed in one sweep",
            hint="fewer values; or budget: {runs: 1000}, with method: random to take them from all over",
        )
    source = _source(parameters, method, repeat, runs, seed, sections)
    return Space(source, method, count, repeats, tuple(dict.fromkeys(notes)), tuple(parts))


def _tables(parameters: Mapping[str, Any], sections: Sequence[Mapping[str, Any]], seed: int) -> list[Table]:
    if not sections:
        return [_checked(read_table(parameters, seed, ("parameters",)))]
    if not isinstance(sections, (list, tuple)):
        raise Fault(("sections",), f"{sections!r} is not a list of tables")
    return [_section(parameters, section, n, _seed_of(seed, n)) for n, section in enumerate(sections)]


def _section(parameters: Mapping[str, Any], section: Any, n: int, seed: int) -> Table:
    """`parameters` with those of the section in place of theirs; a fault is where its key was written."""
    path = ("sections", n)
    if not isinstance(section, Mapping):
        raise Fault(path, f"{section!r} is not a table (key: value)")
    try:
        return _checked(read_table({**parameters, **section}, seed, path))
    except Fault as fault:
        if len(fault.path) < 3 or fault.path[2] in section:
            raise
        raise Fault(("parameters", *fault.path[2:]), fault.said, fault.hint) from None


def _check_repeat(given: Any, repeats: Repeat, tables: Sequence[Table]) -> None:
    """A parameter that `repeat` names is nowhere else."""
    keys = {key for table in tables for entry in table for key in keys_of(entry.form)}
    twice = [key for key in sorted(keys) if f"{key}.".startswith(f"{repeats.key}.")]
    twice += [key for key in sorted(keys) if f"{repeats.key}.".startswith(f"{key}.")]
    if isinstance(given, Mapping) and twice:
        raise Fault(
            ("repeat", repeats.key), f"{twice[0]} is among the parameters too", hint="leave it out there"
        )


def _checked(table: Table) -> Table:
    check_names(table)
    return table


def _seed_of(seed: int, section: int) -> int:
    """Sections draw differently; the first as if there were no others."""
    return draw.bits(seed, section, "section") if section else seed


def _limit(runs: int | None, repeats: Repeat, sections: int) -> int | None:
    """Configurations of one section that the budget allows."""
    if runs is None:
        return None
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise Fault(("budget", "runs"), f"{runs!r} is not a number of runs")
    limit = runs // (repeats.count * sections)
    if limit < 1:
        what = f"{repeats.count} repeats" + (f" of {sections} sections" if sections > 1 else "")
        raise Fault(("budget", "runs"), f"{counted(runs, 'run')} cannot hold {what}")
    return limit


def _part(table: Table, method: str, limit: int | None, seed: int) -> tuple[SpacePart, str]:
    """The part, and what a person should know about it."""
    if method == "random" and not is_finite(table):
        if limit is None:
            raise Fault(
                ("budget", "runs"), "random search needs a number of runs", hint="budget: {runs: 100}"
            )
        return SpacePart(table, None, False, seed, limit), ""
    if method not in ("grid", "random"):
        _check_learnable(table, method)
        return SpacePart(table, None, False, seed, 0), _at_random(table) if method == "cmaes" else ""
    cells = grid(table)
    if limit is None or limit >= cells.size:
        more = (
            f"only {cells.size:,} different configurations: none is run twice" if method == "random" else ""
        )
        note = more if limit and limit > cells.size else ""
        return SpacePart(table, cells, method == "random", seed, cells.size), note
    note = f"the budget covers the first {limit:,} of {cells.size:,}" if method == "grid" else ""
    return SpacePart(table, cells, method == "random", seed, limit), note


def _check_learnable(table: Table, method: str) -> None:
    if not any(dimensions(table)):
        raise Fault(("parameters",), f"nothing for {method} to search: every parameter is a constant")
    for dimension in dimensions(table):
        if isinstance(dimension.form, Normal):
            raise Fault(
                ("parameters", dimension.key), f"{method} searches ranges and choices", hint="min and max"
            )
        if dimension.form and dimension.form.quantum:
            raise Fault(("parameters", dimension.key, "q"), f"is not for {method}", hint="step: is")


def _at_random(table: Table) -> str:
    """Parameters that CMA-ES draws at random instead of learning: choices, and those that some runs lack."""
    drawn = dict.fromkeys(
        dimension.key or dimension.name
        for dimension in dimensions(table)
        if dimension.key not in trying.common_ranges(table)
    )
    return (
        f"cmaes learns over ranges that all runs have; it draws at random: {', '.join(drawn)}"
        if drawn
        else ""
    )


def _source(
    parameters: Mapping[str, Any],
    method: str,
    repeat: Any,
    runs: int | None,
    seed: int,
    sections: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    values = {"method": method, "repeat": repeat, "runs": runs, "seed": seed, "sections": list(sections)}
    usual = {"method": "grid", "repeat": 1, "runs": None, "seed": 0, "sections": []}
    kept = {name: value for name, value in values.items() if value != usual[name]}
    return {"parameters": plain(parameters, ("parameters",)), **plain(kept, ())}


# `parameters` as a person writes them, to entries; every mistake is a Fault at its key.
#
# A table under a name is a range, a row of values, an expression … if it holds one of the words that say so,
# and a table of nested parameters otherwise. `LIST…` holds a list of tables, `ZIP…` a table of rows.


_DEEPEST = 50


def read_table(parameters: Any, seed: int, path: Path = (), prefix: str = "") -> Table:
    """The entries of a table, each key once, what others depend on first."""
    if not isinstance(parameters, Mapping):
        raise Fault(path, f"{parameters!r} is not a table (key: value)")
    return ordered(list(_entries(parameters, path, prefix, seed)))


def _entries(table: Mapping[str, Any], path: Path, prefix: str, seed: int) -> Iterator[SpaceEntry]:
    if len(path) > _DEEPEST:
        raise Fault(path, f"nested more than {_DEEPEST} deep")
    for given, value in table.items():
        word = str(given)
        key, at = f"{prefix}{word}", (*path, word)
        if not word:
            raise Fault(path, "a parameter without a name")
        if group.is_list(word, value):
            yield group.branches(key, value, at, lambda one, place: read_table(one, seed, place, prefix))
        elif group.is_zip(word, value):
            yield group.zipped(key, value, at, prefix, seed)
        elif is_reference(value):
            yield SpaceEntry(at, Constant(key, plain(value, at)))
        elif isinstance(value, Mapping) and not _is_form(value, at):
            yield from _nested(key, value, at, seed)
        else:
            yield _entry(key, value, at, seed)


def _nested(key: str, value: Mapping[str, Any], path: Path, seed: int) -> Iterator[SpaceEntry]:
    if not value:
        raise Fault(path, "an empty table", hint="give it keys, or leave it out")
    yield from _entries(value, path, f"{key}.", seed)


def _is_form(table: Mapping[str, Any], path: Path) -> bool:
    """Whether a table says how values come about; an error if it says that and more."""
    _check_step(table, path)
    if BEST in table:
        hint = "{best-of: SWEEP}, {run: RUN}, with file: NAME, step: N, only: done"
        raise Fault(path, "not a reference to a run", hint=hint)
    lines = [word for word in table if word in DECIDING]
    if not lines:
        return False
    for word in table:
        if word not in WORDS:
            hint = did_you_mean(str(word), WORDS) or f"for a nested parameter write {path[-1]}.{lines[0]}"
            raise Fault((*path, str(word)), f"cannot be combined with {lines[0]}", hint)
    return True


def _check_step(value: Any, path: Path) -> None:
    if names_run(value) and not is_reference(value):
        raise Fault((*path, STEP), f"{value[STEP]!r} is not a step of a run", hint=STEP_HINT)


def _entry(key: str, value: Any, path: Path, seed: int) -> SpaceEntry:
    if isinstance(value, Mapping):
        form = read_form(key, value, path, seed)
        if isinstance(form, Values):
            form = _axis(key, form.values)
        return SpaceEntry(path, form, _when(value.get("when"), path))
    if not isinstance(value, (list, tuple, range)):
        return SpaceEntry(path, Constant(key, plain(value, path)))
    if not value:
        raise Fault(path, "an empty list: no values", hint="give it values, or leave it out")
    for n, one in enumerate(value if isinstance(value, (list, tuple)) else ()):
        _check_step(one, (*path, n))
    return SpaceEntry(path, _axis(key, [plain(one, (*path, n)) for n, one in enumerate(value)]))


def _axis(key: str, values: Any) -> Values | Constant:
    found = values if isinstance(values, range) else distinct(values)
    return Values(key, found) if len(found) > 1 else Constant(key, found[0])


def _when(given: Any, path: Path) -> When:
    if given is None:
        return ()
    at = (*path, "when")
    if not isinstance(given, Mapping) or not given:
        raise Fault(at, f"{given!r} is not a condition", hint="for example when: {optim: sgd}")
    return tuple((key, _allowed(value, at)) for key, value in _flat(given))


def _flat(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _allowed(value: Any, path: Path) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not values:
        raise Fault(path, "an empty list is never met")
    return tuple(plain(one, path) for one in values)
