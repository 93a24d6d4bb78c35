from __future__ import annotations

from hostler.records import defaults, project
from hostler.records.defaults import Ledger
from hostler.settings import Timing
from hostler.store import open_store

COMMAND = ("python", "train.py")


def test_changed_default_is_noted_and_the_old_one_stays_known() -> None:
    store = open_store("memory:")
    project.ensure(store, "p", Timing(beat=3.0))
    assert defaults.note(store, COMMAND, {"lr": 0.1})
    assert not defaults.note(store, COMMAND, {"lr": 0.1})
    assert defaults.note(store, COMMAND, {"lr": 0.2, "width": 8})
    known = defaults.history(store)
    assert [values[" ".join(COMMAND)]["lr"] for _, values in known] == [0.1, 0.2]
    assert project.agreed(store, Timing()).beat == 3.0


def test_a_run_has_the_defaults_that_held_when_it_started() -> None:
    known = [(10.0, {"python train.py": {"lr": 0.1}}), (20.0, {"python train.py": {"lr": 0.2, "width": 8}})]
    assert defaults.at(known, COMMAND, 15.0) == {"lr": 0.1, "width": 8}
    assert defaults.at(known, COMMAND, 25.0) == {"lr": 0.2, "width": 8}
    assert defaults.at(known, COMMAND, 5.0) == {"lr": 0.1, "width": 8}
    assert defaults.at(known, ("python", "other.py"), 25.0) == {}


def test_a_process_notes_the_same_defaults_once() -> None:
    store = open_store("memory:")
    project.ensure(store, "p", Timing())
    ledger, asked = Ledger(), []
    ledger.note(store, COMMAND, {"lr": 0.1})
    store.before = lambda op, key: asked.append(key)  # type: ignore[attr-defined]
    ledger.note(store, COMMAND, {"lr": 0.1})
    assert asked == [] and len(defaults.history(store)) == 1
