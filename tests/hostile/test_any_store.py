"""Stores that an enemy wrote, any record, any key, any bytes: every verb keeps its promises."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from arena import DELETING, READING, TAKING, WORKER, Attack
from enemy import any_deed
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schedule import repeatable

WORKING = 40.0  # seconds for a worker, which may wait for a lease

Verbs = Sequence[Sequence[str]]


@pytest.mark.parametrize("verbs", [READING, (*TAKING, *DELETING)], ids=["reading", "taking-and-deleting"])
def test_no_verb_breaks_a_promise(honest: Path, attack: Attack, verbs: Verbs) -> None:
    _attack(honest, attack, verbs, examples=10, deeds=6)


def test_no_worker_breaks_a_promise(honest: Path, attack: Attack) -> None:
    _attack(honest, attack, [WORKER], examples=4, deeds=8)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(5))
def test_no_verb_breaks_a_promise_for_long(honest: Path, attack: Attack, number: int) -> None:
    _attack(honest, attack, (*READING, *TAKING, *DELETING), examples=60, deeds=3, number=number, shrinks=True)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(3))
def test_no_worker_breaks_a_promise_for_long(honest: Path, attack: Attack, number: int) -> None:
    _attack(honest, attack, [WORKER], examples=40, deeds=3, number=number, shrinks=True)


def _attack(
    honest: Path,
    attack: Attack,
    verbs: Verbs,
    *,
    examples: int,
    deeds: int,
    number: int | None = None,
    shrinks: bool = False,
) -> None:
    """Several deeds at once, as a verb takes longer than a deed; a failure of the long dose is made small."""

    @seed(repeatable(number))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(st.lists(any_deed(honest), min_size=1 if shrinks else deeds, max_size=deeds))
    def holds(drawn: list[object]) -> None:
        found = attack(drawn, verbs, WORKING if verbs == [WORKER] else 10.0)
        assert not found, "\n".join(map(str, found))

    holds()
