"""Forms of options that the first usage error of a sweep showed: other runs begin with them.

Each record names forms by key, and the code that they are for. It is put if absent, and never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hostler.records import layout
from hostler.records.body import decode, encode, taken_apart
from hostler.spec.style import Form, Style, from_json, same_key, to_json
from hostler.store import Store

VERSION = 1


def read(store: Store, sweep: str, code: str) -> dict[str, Form]:
    """Forms by key that were learned with this code; the first of a key holds."""
    forms: dict[str, Form] = {}
    for n in _numbers(store, sweep):
        key = layout.learned_form(sweep, n)
        record = decode(store.get(key).data, key)
        with taken_apart(key):
            if record["version"] == VERSION and record["code"] == code:
                forms = {**from_json(record["forms"]).keys, **forms}
    return forms


def learn(store: Store, sweep: str, code: str, forms: Mapping[str, Form], used: Collection[str]) -> bool:
    """Write down forms that nobody has yet; False if all of them were `used` already, and did not help."""
    forms = {same_key(key): form for key, form in forms.items()}
    while new := {key: form for key, form in forms.items() if key not in read(store, sweep, code)}:
        n = 1 + max(_numbers(store, sweep), default=0)
        record = {"version": VERSION, "code": code, "forms": to_json(Style().given(new))}
        if store.put(layout.learned_form(sweep, n), encode(record), if_absent=True):
            break
    return any(key not in used for key in forms)


def _numbers(store: Store, sweep: str) -> list[int]:
    """Numbers of the records, in order; a stray file among them has none."""
    names = (
        entry.key.rsplit("/", 1)[1].removesuffix(".json") for entry in store.list(layout.learned_forms(sweep))
    )
    return sorted(n for name in names for n in layout.numbers(name) or ())
