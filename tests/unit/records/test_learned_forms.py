from __future__ import annotations

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.sweep import learned_forms
from hostler.spec.style import Form
from hostler.store.memory import MemoryStore

BARE, VALUE = Form("bare"), Form("value")


def test_a_learned_form_is_read_by_other_runs() -> None:
    store = MemoryStore()
    assert learned_forms.learn(store, "s", "code", {"use-amp": BARE}, ())
    assert learned_forms.read(store, "s", "code") == {"use_amp": BARE}
    assert learned_forms.read(store, "other", "code") == {}


def test_forms_of_other_code_or_version_are_passed_over() -> None:
    store = MemoryStore()
    learned_forms.learn(store, "s", "old", {"amp": BARE}, ())
    later = {"version": 2, "code": "new", "forms": {"keys": {"amp": {"booleans": "value"}}}}
    store.put(layout.learned_form("s", 2), encode(later))
    store.put(f"{layout.learned_forms('s')}stray.json", b"x")
    assert learned_forms.read(store, "s", "new") == {}


def test_first_form_of_a_key_holds_and_is_tried_once() -> None:
    store = MemoryStore()
    assert learned_forms.learn(store, "s", "c", {"amp": BARE}, ())
    assert learned_forms.learn(store, "s", "c", {"amp": VALUE}, ())  # a run that began before: goes by it
    assert learned_forms.read(store, "s", "c") == {"amp": BARE}
    assert not learned_forms.learn(store, "s", "c", {"amp": VALUE}, ("amp",))
    assert not learned_forms.learn(store, "s", "c", {}, ())
    assert [entry.key for entry in store.list(layout.learned_forms("s"))] == [layout.learned_form("s", 1)]
