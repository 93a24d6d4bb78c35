"""The checker itself: a verb that breaks a promise is seen, one that keeps them all is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from arena import ALL, SECRET, WORKER, Answer, Attack, Breach, Ground, judged

PLANTED = {
    "writes_into_home": "outside",
    "changes_a_mode": "outside",
    "leaves_a_file_above": "outside",
    "leaves_a_file_beside_its_target": "outside",
    "deletes_outside": "outside",
    "shows_the_canary": "secret",
    "takes_the_canary": "secret",
    "restores_a_link_out": "target",
    "restores_a_setuid_file": "target",
    "raises": "exception",
    "raises_in_a_thread": "exception",
    "is_killed": "exception",
    "takes_memory": "memory",
    "hangs": "time",
}


@pytest.mark.parametrize("culprit", PLANTED)
def test_a_planted_breach_is_seen(attack: Attack, culprit: str) -> None:
    seconds = 0.5 if culprit == "hangs" else 10.0
    found = attack([], [(f"culprits:{culprit}",)], seconds)
    assert {breach.promise for breach in found} == {PLANTED[culprit]}


def test_a_verb_that_keeps_all_promises_passes(attack: Attack) -> None:
    assert not attack([], [("culprits:behaves",), ("culprits:says_what_is_wrong",)])


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "a\rb", "\x08"])
def test_an_escape_sequence_is_seen(text: str) -> None:
    assert _promises("status", text) == ["terminal"]
    assert not _promises("df", text)
    assert not _promises("status", "names\tand\nlines ü → │")


def test_words_of_the_canary_are_seen() -> None:
    assert _promises("show x", f"text {SECRET}") == ["secret"]


def test_a_sweep_that_is_not_shown_is_seen(grounds: Callable[[], Iterator[Ground]]) -> None:
    with grounds() as place:
        place.remove_good_sweeps()
        found = place.breaches([("status", "--json"), WORKER], rest=True)
    assert [breach.promise for breach in found] == ["rest", "rest"]


def test_an_honest_store_breaks_no_promise(attack: Attack) -> None:
    assert not attack([], [*ALL, WORKER])


def _promises(verb: str, out: str) -> list[str]:
    found: list[Breach] = list(judged(verb, Answer(0, 0.1, 1 << 20, False, out, ""), 10.0))
    return [breach.promise for breach in found]
