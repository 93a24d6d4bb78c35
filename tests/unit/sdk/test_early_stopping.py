"""When it stops, in both directions, with odd values, and after a restart."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.earlystop import EarlyStopping as FromTheOldPlace
from hostler.errors import UsageError
from hostler.sdk.early_stopping import EarlyStopping


def feed(stopping: EarlyStopping, values: list[float]) -> list[bool]:
    return [stopping.stop(value) for value in values]


def test_it_stops_after_patience_values_that_are_no_better() -> None:
    assert feed(EarlyStopping(patience=3), [1.0, 0.5, 0.6, 0.5, 0.7]) == [False, False, False, False, True]


def test_a_better_value_restores_patience() -> None:
    assert feed(EarlyStopping(patience=2), [1.0, 1.0, 0.9, 1.0, 1.0]) == [False, False, False, False, True]


def test_max_means_higher_is_better() -> None:
    stopping = EarlyStopping(mode="max", patience=2)
    assert feed(stopping, [0.1, 0.2, 0.3, 0.2, 0.1]) == [False, False, False, False, True]
    assert stopping.best == 0.3


def test_a_gain_no_larger_than_min_delta_is_none() -> None:
    assert feed(EarlyStopping(patience=2, min_delta=0.1), [1.0, 0.95, 0.91]) == [False, False, True]


def test_nan_is_no_improvement_and_never_becomes_the_best() -> None:
    stopping = EarlyStopping(patience=3)
    assert feed(stopping, [math.nan, 1.0, math.nan, math.nan, math.nan])[-1]
    assert stopping.best == 1.0
    assert feed(EarlyStopping(patience=2), [math.nan, math.nan]) == [False, True]


def test_the_patience_of_the_words_of_before_is_ten() -> None:
    assert feed(EarlyStopping(), [0.0] * 11) == [False] * 10 + [True]


def test_the_old_import_gives_the_same_class() -> None:
    assert FromTheOldPlace is EarlyStopping


@pytest.mark.parametrize("mode", ["mni", "", "lowest", None])
def test_an_unknown_mode_is_refused_in_one_line(mode: str) -> None:
    with pytest.raises(UsageError, match="mode cannot be"):
        EarlyStopping(mode=mode)


@pytest.mark.parametrize("patience", [0, -1, 1.5, True])
def test_patience_that_is_not_a_positive_whole_number_is_refused(patience: int) -> None:
    with pytest.raises(UsageError, match="patience cannot be"):
        EarlyStopping(patience=patience)


@pytest.mark.parametrize("delta", [-0.1, math.nan])
def test_a_negative_min_delta_is_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="min_delta cannot be"):
        EarlyStopping(min_delta=delta)


@pytest.mark.parametrize("metric", [[1.0, 2.0], "low", None])
def test_what_is_not_one_number_is_refused(metric: float) -> None:
    with pytest.raises(UsageError, match="not one number"):
        EarlyStopping().stop(metric)


def test_a_state_of_the_other_direction_is_refused() -> None:
    with pytest.raises(UsageError, match="mode 'max'"):
        EarlyStopping("max").load_state_dict(EarlyStopping("min").state_dict())


@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=30),
    at=st.integers(0, 30),
    mode=st.sampled_from(["min", "max"]),
)
def test_saved_and_restored_stopper_answers_as_if_undisturbed(
    values: list[float], at: int, mode: str
) -> None:
    undisturbed = EarlyStopping(mode, patience=4)
    expected = feed(undisturbed, values)
    first = EarlyStopping(mode, patience=4)
    answers = feed(first, values[:at])
    second = EarlyStopping(mode, patience=4)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert answers + feed(second, values[at:]) == expected
    assert second.state_dict() == undisturbed.state_dict()
