"""Entries of a run's log: what each type writes, and that nothing else writes any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hostler
from hostler.records.run import entries, log
from hostler.records.run.entries import Claim, End, Lost, Outcome, Release, Reopen, StopRequest, closing
from hostler.records.run.state import fold
from hostler.spec.states import ALL, ENDED

KINDS = {"CLAIM", "RELEASE", "STOP_REQUEST", "END", "REOPEN"}
READERS = {"records/series/segments.py"}  # makes the ends of a segment's rows again, for readers


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


def makers(text: str) -> bool:
    """Whether code makes a table whose `kind` is one of the log's, in any form."""
    return any(map(_is_kind, _kinds(ast.parse(text))))


def _kinds(tree: ast.AST) -> Iterator[ast.expr]:
    """Values that become the `kind` of something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in pairs if _is_text(key, {"kind"}))
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("dict", "update"):
            yield from (word.value for word in node.keywords if word.arg == "kind")
        elif isinstance(node, ast.Assign):
            targets = [target for target in node.targets if isinstance(target, ast.Subscript)]
            yield from (node.value for target in targets if _is_text(target.slice, {"kind"}))


def _is_kind(value: ast.expr) -> bool:
    return _last_name(value) in KINDS or _is_text(value, {getattr(log, name) for name in KINDS})


def _is_text(node: ast.expr | None, texts: set[str]) -> bool:
    return isinstance(node, ast.Constant) and node.value in texts


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize(
    "text",
    [
        "{'kind': log.CLAIM}",
        "{'kind': CLAIM, 'at': 1}",
        "{**facts, 'kind': 'stop-request'}",
        "dict(facts, kind='end')",
        "dict(kind=log.END)",
        "entry.update(kind='reopen')",
        "entry['kind'] = 'release'",
    ],
)
def test_every_form_of_making_an_entry_is_seen(text: str) -> None:
    assert makers(text)
    assert not makers(text.replace("kind", "sort"))


def test_no_other_module_makes_entries() -> None:
    source = Path(hostler.__file__).parent
    found = {p.relative_to(source).as_posix() for p in source.rglob("*.py") if makers(p.read_text())}
    assert found == {"records/run/entries.py", *READERS}
