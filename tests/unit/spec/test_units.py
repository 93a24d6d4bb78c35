from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.spec.units import duration, show_ago, show_duration, show_elapsed, show_number, show_size, size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("6h", 21600),
        ("1d", 86400),
        ("1w", 604800),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("2 hours", 7200),
        ("250ms", 0.25),
        ("6H", 21600),
        ("120", 120),
        (90, 90),
        (0.5, 0.5),
        (0, 0),
    ],
)
def test_durations_are_seconds(text: object, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["abc", "", " ", "6x", "h", "1h30", "-5s", -1, True, None, [1], "1e99d", "nan", float("inf")]
)
def test_what_is_no_duration_says_what_one_looks_like(text: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration \(like 90s, 30m, 6h, 1d\)"):
        duration(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("16GB", 16 * 10**9),
        ("16gb", 16 * 10**9),
        ("16G", 16 * 10**9),
        ("512MiB", 512 * 2**20),
        ("4Gi", 4 * 2**30),
        ("1.5 KB", 1500),
        ("0.1GB", 10**8),
        ("7B", 7),
        ("1000", 1000),
        (1024, 1024),
        (1e9, 10**9),
        (2**70 + 1, 2**70 + 1),
    ],
)
def test_sizes_are_bytes(text: object, count: int) -> None:
    assert size(text) == count
    assert type(size(text)) is int


@pytest.mark.parametrize(
    "text", ["abc", "", "16XB", "GB", "-1GB", -1, True, None, "1GBB", "1i", "1 iB", float("nan")]
)
def test_what_is_no_size_says_what_one_looks_like(text: object) -> None:
    with pytest.raises(ValueError, match=r"is not a size \(like 16GB, 512MiB\)"):
        size(text)


@given(st.floats(0, 1e11) | st.integers(0, 10**11))
def test_an_exact_duration_is_read_back_exactly(seconds: float) -> None:
    assert duration(show_duration(seconds, exact=True)) == seconds


@given(st.integers(0, 2**63))
def test_an_exact_size_is_read_back_exactly(count: int) -> None:
    assert size(show_size(count, exact=True)) == count


@given(st.floats(1e-3, 1e9))
def test_a_short_duration_is_short_and_near(seconds: float) -> None:
    shown = show_duration(seconds)
    assert len(shown) <= 10
    assert duration(shown) == pytest.approx(seconds, rel=0.1, abs=1e-3)


@given(st.integers(0, 10**20))
def test_a_short_size_is_short_and_near(count: int) -> None:
    shown = show_size(count)
    assert len(shown) <= 5
    assert size(shown) == pytest.approx(count, rel=0.06)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (3.25, "3.2s"),
        (9, "9s"),
        (65, "1m 05s"),
        (5400, "1h 30m"),
        (93784.5, "1d 02h"),
        (-65, "-1m 05s"),
    ],
)
def test_durations_for_people(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1KB"),
        (1536, "1.5KB"),
        (999_960, "1MB"),
        (16 * 10**9, "16GB"),
        (123_456_789, "123MB"),
    ],
)
def test_sizes_for_people(count: int, shown: str) -> None:
    assert show_size(count) == shown


def test_exact_sizes_use_the_unit_that_fits() -> None:
    assert show_size(512 * 2**20, exact=True) == "512MiB"
    assert show_size(16 * 10**9, exact=True) == "16GB"
    assert show_size(1001, exact=True) == "1001B"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.96834, "0.9683"),
        (0.968, "0.968"),
        (0.00163, "1.63e-3"),
        (0.0016312, "1.631e-3"),
        (3e-4, "3e-4"),
        (0.01, "0.01"),
        (0.0099999999, "0.01"),
        (-0.00123456, "-1.235e-3"),
        (0.0, "0"),
        (128.0, "128"),
        (12_000_000, "12000000"),
        (12345.678, "12346"),
        (1234567.8, "1.235e6"),
        (1e10, "1e10"),
        (math.nan, "NaN"),
        (-math.inf, "-inf"),
    ],
)
def test_results_have_four_digits_and_an_exponent_when_small(value: float, shown: str) -> None:
    assert show_number(value) == shown


@given(st.floats(-1e300, 1e300))
def test_short_number_is_near_and_short(value: float) -> None:
    assert float(show_number(value)) == pytest.approx(value, rel=6e-4)
    assert len(show_number(value)) <= 11


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3.25, "3.2s"), (60, "1m 00s"), (125, "2m 05s"), (86405, "1d 00h")]
)
def test_durations_in_a_column_have_both_parts(seconds: float, shown: str) -> None:
    assert show_elapsed(seconds) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0.4, "just now"), (12, "12s ago"), (7300, "2h ago")])
def test_moments_are_said_relative_to_now(seconds: float, shown: str) -> None:
    assert show_ago(seconds) == shown
