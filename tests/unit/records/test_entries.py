"""Entries of a run's log: what each type writes, and that nothing else writes any."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hostler
from hostler.records.run import entries, log
from hostler.records.run.entries import Claim, End, Lost, Outcome, Release, Reopen, StopRequest, closing
from hostler.records.run.state import fold
from hostler.spec.states import ALL, ENDED

KINDS = {"CLAIM", "RELEASE", "STOP_REQUEST", "END", "REOPEN"}


def test_claim_names_session_and_lost_attempt() -> None:
    record = Claim("s", Lost(1, True), until=30, facts={"host": "h"}).record()
    after = {"why": "lost", "counts": "lost", "attempt": 1, "progress": True}
    assert record == {"kind": "claim", "session": "s", "host": "h", "after": after, "until": 30}
    assert Claim("s").record() == {"kind": "claim", "session": "s", "after": None}


@pytest.mark.parametrize("state", [state for state in ALL if state != "running"])
def test_outcome_state_decides_between_end_and_release(state: str) -> None:
    entry = closing(3, Outcome(state, "why"))
    assert isinstance(entry, End if state in ENDED else Release)
    assert fold([{"kind": "claim"}, entry.record()]).state == state


def test_outcome_leaves_unknown_facts_out() -> None:
    record = End(2, Outcome("done", exit=0, metrics={}, more={"notes": "n"})).record()
    assert record == {"kind": "end", "attempt": 2, "state": "done", "exit": 0, "metrics": {}, "notes": "n"}


def test_reopened_run_is_queued_and_a_lost_holder_named() -> None:
    run = [Claim("s").record(), StopRequest("pause").record(), Reopen("me", fresh=True, lost=1).record()]
    state = fold(run)
    assert (state.state, state.stop, state.fresh_from) == ("queued", None, 3)
    assert (run[2]["why"], run[2]["attempt"]) == ("lost", 1)


def test_copied_end_names_its_original_and_no_attempt() -> None:
    end = {"format": 1, "token": "t", "at": 1.0, "kind": "end", "state": "done", "attempt": 4, "step": 9}
    assert entries.copied_end(end, "r") == {
        "kind": "end",
        "state": "done",
        "step": 9,
        "attempt": 0,
        "copy_of": "r",
    }


def makers(path: Path) -> bool:
    """Whether a module writes a dict whose `kind` is one of the log's."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                named = isinstance(key, ast.Constant) and key.value == "kind"
                if named and isinstance(value, ast.Attribute) and value.attr in KINDS:
                    return True
    return False


def test_no_other_module_makes_entries() -> None:
    assert all(hasattr(log, kind) for kind in KINDS)
    source = Path(hostler.__file__).parent
    assert [p.name for p in source.rglob("*.py") if makers(p)] == ["entries.py"]
