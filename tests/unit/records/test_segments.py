from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.series import merging, segments
from hostler.records.series.points import Point
from hostler.records.series.segments import PackedRun, Segment
from hostler.store import open_store

END = {"kind": "end", "state": "done", "attempt": 1, "attempts": 1, "host": "h", "at": 5.5}


def run(n: int, *, k: int = 2, points: list[Point] | None = None, **params: Any) -> PackedRun:
    return segments.packed(f"{n:07d}-s-abc", k, {**END, "step": n}, params, points or [])


def there_and_back(*found: PackedRun) -> Segment:
    return segments.decode(segments.encode("s", found), "x")


def params_of(segment: Segment) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(segment.rows)]
    for name, sparse in segment.header["params"].items():
        for n, value in segment._cells(sparse):
            rows[n][name] = value
    return rows


plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.lists(st.integers())
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.text(min_size=1), plain, max_size=4), max_size=6))
def test_parameters_come_back_with_the_types_they_had(rows: list[dict[str, Any]]) -> None:
    packed = [segments.packed(f"{n:07d}-s", 1, END, row, []) for n, row in enumerate(rows)]
    back = params_of(there_and_back(*packed))
    assert back == rows
    kinds = [{name: type(value) for name, value in row.items()} for row in back]
    assert kinds == [{name: type(value) for name, value in row.items()} for row in rows]


def test_ends_return_with_metrics_and_without_machine_measurements() -> None:
    points = [Point(0, 1.0, {"loss": 3.0, "system/cpu": 0.5}), Point(1, 2.0, {"loss": math.nan})]
    segment = there_and_back(run(0, points=points), run(1))
    first, second = segment.ends()
    assert (first["state"], first["host"], first["at"], first["step"]) == ("done", "h", 5.5, 0)
    assert set(first["metrics"]) == {"loss"} and second["metrics"] == {}
    assert math.isnan(first["metrics"]["loss"]["last"]) and first["metrics"]["loss"]["min"] == 3.0
    assert (segment.runs, segment.ks) == (["0000000-s-abc", "0000001-s-abc"], [2, 2])


def test_metrics_that_are_in_the_end_alone_are_not_lost() -> None:
    row = {"last": 1.0, "min": 0.5, "max": 2.0, "step": 3}
    packed = segments.packed("0000000-s", 2, {**END, "metrics": {"acc": row}}, {}, [])
    assert there_and_back(packed).ends()[0]["metrics"] == {"acc": row}


def test_curve_too_large_for_a_segment_stays_in_its_objects() -> None:
    points = [Point(n, 0.0, {"a": 1.0}) for n in range(segments.LARGE // 24 + 1)]
    segment = there_and_back(run(0), run(1, points=points))
    assert segment.header["apart"] == [1] and segment.header["tracks"] == []
    assert segment.ends()[1]["metrics"]["a"]["last"] == 1.0


def test_invalid_segment_is_damage_and_a_newer_one_is_named() -> None:
    data = segments.encode("s", [run(0, points=[Point(0, 0.0, {"a": 1.0})])])
    for bad in (b"", b"x" * 40, data[:-8], data[:40], b"HSTS\x01\x00\x00\x00\x05\x00\x00\x00hello"):
        with pytest.raises(DamagedError):
            segments.decode(bad, "x")
    with pytest.raises(NewerFormatError):
        segments.decode(data[:4] + b"\x09\x00" + data[6:], "x")


def test_two_writers_never_write_one_segment() -> None:
    store = open_store("memory:")
    assert segments.write(store, "s", [run(0)]) == 1
    assert segments.write(store, "s", [run(1)]) == 2  # it believed that there was none
    assert segments.write(store, "s", [run(2)], 1) == 3
    assert [entry.key for entry in store.list(layout.segments("s"))] == [
        layout.segment("s", n) for n in (1, 2, 3)
    ]


def test_merged_segments_hold_what_each_of_them_held() -> None:
    one = there_and_back(run(0, lr=0.1, name="a", points=[Point(0, 0.0, {"a": 1.0, "b": 2.0})]), run(1, lr=1))
    two = there_and_back(run(2, lr=0.2, deep=[1], points=[Point(4, 1.0, {"a": 3.0})]), run(3))
    merged = segments.decode(b"".join(merging.merge("s", [one, two], numbers=[1, 2])), "x")
    assert merged.runs == [*one.runs, *two.runs] and merged.ks == [2] * 4
    assert params_of(merged) == [*params_of(one), *params_of(two)]
    assert merged.ends() == [*one.ends(), *two.ends()]
    assert merged.header["numbers"] == [1, 2]
    groups = {tuple(group["names"]): (group["rows"], group["counts"]) for group in merged.header["tracks"]}
    assert groups == {("a", "b"): ([0], [1]), ("a",): ([2], [1])}


@pytest.mark.parametrize("texts", [["a", "b|c"], ["a", "ä b"], ["", "x"], ["a", None], ["x", 1], ["a", "a"]])
def test_texts_of_a_merged_segment_are_those_of_its_parts(texts: list[Any]) -> None:
    parts = [there_and_back(run(n, lr=text), run(n + 2, lr=text)) for n, text in enumerate(texts)]
    merged = segments.decode(b"".join(merging.merge("s", parts)), "x")
    assert params_of(merged) == [row for part in parts for row in params_of(part)]
    assert merged.runs == [name for part in parts for name in part.runs]
    assert segments.decode(b"".join(merging.merge("s", [merged, *parts])), "x").runs == 2 * merged.runs


def test_text_of_too_few_rows_is_damage() -> None:
    header = dict(segments.decode(segments.encode("s", [run(0), run(1)]), "x").header)
    header["run"] = ["t", header["run"][1][0]]
    with pytest.raises(DamagedError):
        segments.decode(segments.head(header) + bytes(64), "x")


def test_end_comes_back_with_all_that_ranks_it() -> None:
    points = [Point(0, 1.0, {"acc": 0.2, "loss": 1.0}), Point(1, 2.0, {"acc": 0.9, "loss": 2.0})]
    kept, means = {"acc": {"goal": "max", "value": 0.9, "step": 1}}, {"acc": {"of": 2, "value": 0.55}}
    packed = segments.packed("0000000-s", 2, {**END, "kept": kept, "means": means}, {}, points)
    segment = there_and_back(packed)
    segment.check_facts("x")
    end = segment.ends(("last",), ["acc"])[0]
    assert (end["kept"], end["means"]) == (kept, means)
    assert end["metrics"] == {
        "acc": {"last": 0.9, "min": 0.2, "max": 0.9, "step": 1.0, "min_step": 0.0, "max_step": 1.0},
        "loss": {"last": 2.0},
    }


def test_segment_of_an_older_hostler_has_no_steps_of_extremes() -> None:
    segment = there_and_back(run(0, points=[Point(3, 1.0, {"acc": 0.2})]))
    for name in segments.STEPS:
        del segment.header["totals"]["acc"][name]
    assert segment.ends((), ["acc"])[0]["metrics"] == {
        "acc": {"last": 0.2, "min": 0.2, "max": 0.2, "step": 3.0}
    }


@pytest.mark.parametrize("kept", [{"acc": 1}, {"acc": {"goal": "max", "value": "x", "step": 1}}, {"acc": {}}])
def test_kept_state_that_hostler_does_not_write_is_damage(kept: Any) -> None:
    packed = segments.packed("0000000-s", 2, {**END, "kept": kept}, {}, [])
    with pytest.raises(DamagedError):
        there_and_back(packed).check_facts("x")
