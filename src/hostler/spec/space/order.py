"""Entries, each after what it depends on; keys given twice, circles and unknown names are found here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.spec.nearest import did_you_mean
from hostler.spec.space.entry import Branches, Constant, Derived, SpaceEntry, Table, keys_of
from hostler.spec.space.expression import lookup
from hostler.spec.space.fault import Fault, dotted


def ordered(entries: Sequence[SpaceEntry]) -> Table:
    """The entries of one table, in their own order but for those that depend on a later one."""
    owners = _owners(entries)
    done: dict[int, SpaceEntry] = {}
    defaults = [e for e in entries if isinstance(e.form, Constant) and owners[e.form.key] is not e]
    for entry in (*defaults, *entries):
        _place(entry, owners, done, ())
    return tuple(done.values())


def check_names(table: Table) -> None:
    """Every parameter that an expression names is there, and none is computed from itself."""
    known = dict.fromkeys(key for entry in _all(table) for key in keys_of(entry.form))
    needs: dict[str, set[str]] = {}
    for path, form in [(e.path, e.form) for e in _all(table) if isinstance(e.form, Derived)]:
        for name in sorted(form.expression.names):
            key = lookup(name, known)
            if key is None:
                raise Fault((*path, "expr"), f"no parameter named {name}", did_you_mean(name, known))
            needs.setdefault(form.key, set()).add(key)
    sound: set[str] = set()
    for key in needs:
        _follow(key, needs, sound, ())


def _owners(entries: Sequence[SpaceEntry]) -> dict[str, SpaceEntry]:
    """key → the entry that sets it. A constant may be set again by tables of a LIST, which win."""
    owners: dict[str, SpaceEntry] = {}
    for entry in entries:
        for key in sorted(keys_of(entry.form)):
            old = owners.get(key)
            if old and not _overrides(entry, old) and not _overrides(old, entry):
                raise Fault(entry.path, f"{key} is given twice", f"also as {dotted(old.path)}")
            if old is None or isinstance(entry.form, Branches):
                owners[key] = entry
    tables = {key[:at] for key in owners for at, char in enumerate(key) if char == "."}
    for key in sorted(tables & set(owners)):
        raise Fault(owners[key].path, f"{key} is a value here and a table of values elsewhere")
    return owners


def _overrides(one: SpaceEntry, other: SpaceEntry) -> bool:
    return isinstance(one.form, Branches) and isinstance(other.form, Constant) and not other.when


def _place(
    entry: SpaceEntry, owners: dict[str, SpaceEntry], done: dict[int, SpaceEntry], open_: tuple[int, ...]
) -> None:
    if id(entry) in done:
        return
    if id(entry) in open_:
        raise Fault(entry.path, "its condition depends on itself")
    for key, _ in entry.when:
        owner = owners.get(key)
        if owner is None:
            raise Fault((*entry.path, "when"), f"no parameter named {key}", did_you_mean(key, owners))
        if isinstance(owner.form, Derived):
            raise Fault((*entry.path, "when"), f"{key} is computed, so no condition can depend on it")
        _place(owner, owners, done, (*open_, id(entry)))
    done[id(entry)] = entry


def _all(table: Table) -> Iterator[SpaceEntry]:
    for entry in table:
        yield entry
        if isinstance(entry.form, Branches):
            for branch in entry.form.branches:
                yield from _all(branch)


def _follow(key: str, needs: dict[str, set[str]], sound: set[str], before: tuple[str, ...]) -> None:
    if key in before:
        raise Fault((), f"{' → '.join((*before, key))}: computed from itself")
    if key not in sound:
        for need in sorted(needs.get(key, ())):
            _follow(need, needs, sound, (*before, key))
    sound.add(key)
