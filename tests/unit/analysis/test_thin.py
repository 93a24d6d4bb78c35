"""Long curves as few points."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from hostler.analysis.thin import thin


def test_million_points_become_few_and_keep_extremes_and_ends() -> None:
    xs = list(range(1_000_000))
    ys = [math.sin(x / 1e4) for x in xs]
    ys[345_678], ys[456_789] = 9.0, -9.0
    x, y = thin(xs, ys, 300)
    assert len(x) <= 310
    assert (x[0], x[-1]) == (0, 999_999)
    assert max(y) == 9.0
    assert min(y) == -9.0


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=400), st.integers(3, 60))
def test_thinned_points_stay_in_order_on_the_curve_within_limit(ys: list[float], most: int) -> None:
    x, y = thin(range(len(ys)), ys, most)
    assert list(x) == sorted(set(x))
    assert all(ys[i] is v or ys[i] == v for i, v in zip(x, y, strict=True))
    assert len(x) <= max(most, 4 * (most // 3) + 2)
    finite = [v for v in ys if math.isfinite(v)]
    if finite:
        assert max(v for v in y if math.isfinite(v)) == max(finite)
