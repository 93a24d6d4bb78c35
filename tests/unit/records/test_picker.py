from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.records.series.picker import Picker
from hostler.records.series.points import Point, pack, unpack
from hostler.spec.job import MetricSource

PATTERN = r"(?P<step>\S+) loss=(?P<loss>\S+)"
NAMES = ["step", "epoch", "loss", "a/b", "\ud800"]
NUMBERS = st.floats() | st.integers() | st.booleans() | st.none() | st.text(max_size=3)
OBJECTS = st.recursive(
    NUMBERS, lambda one: st.dictionaries(st.sampled_from(NAMES), one, max_size=3), max_leaves=5
)


def pick(text: str, source: MetricSource | None = None) -> list[tuple[int, dict[str, float]]]:
    picker = Picker(source or MetricSource())
    points = picker.feed(text.encode(), 1.0) + picker.close(1.0)
    return [(point.step, dict(point.values)) for point in points]


def test_json_lines_with_and_without_a_step() -> None:
    assert pick('{"loss": 1}\n{"loss": 2}\n{"step": 9, "loss": 3}\n{"loss": 4}') == [
        (0, {"loss": 1.0}),
        (1, {"loss": 2.0}),
        (9, {"loss": 3.0}),
        (10, {"loss": 4.0}),
    ]


def test_epoch_is_a_step_and_metric_and_nested_names_join() -> None:
    assert pick('{"epoch": 3, "val": {"acc": 0.5, "name": "x"}}') == [(3, {"epoch": 3.0, "val/acc": 0.5})]


def test_what_is_no_metric_is_nothing() -> None:
    for line in ("{}", "{loss: 1}", '{"a": "b"}', '["loss", 1]', "loss 1", '{"ok": true}', '{"step": 3}'):
        assert pick(line) == []


def test_step_that_no_file_can_hold_is_not_a_step() -> None:
    for step in ("1e300", "Infinity", "NaN", "-1e40"):
        assert pick(f'{{"step": {step}, "loss": 1}}') == [(0, {"loss": 1.0})]


def test_deep_json_is_passed_over() -> None:
    assert pick('{"a":' * 100_000 + "1" + "}" * 100_000) == []


def test_a_progress_bar_is_lines() -> None:
    assert [step for step, _ in pick('{"loss": 1}\r{"loss": 2}\r')] == [0, 1]


def test_a_resumed_run_counts_on() -> None:
    picker = Picker(MetricSource())
    picker.continue_from(7)
    assert [point.step for point in picker.feed(b'{"loss": 1}\n', 0.0)] == [7]


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_no_bytes_make_it_raise(pieces: list[bytes], by_pattern: bool) -> None:
    picker = Picker(MetricSource(pattern=PATTERN if by_pattern else None))
    points = [point for piece in [*pieces, b"\n"] for point in picker.feed(piece, 0.0)]
    assert len(unpack(pack(points))) == len(points)


@given(st.lists(OBJECTS, max_size=4), st.integers(1, 9))
def test_whatever_json_comes_can_be_stored_however_it_is_cut(objects: list[object], size: int) -> None:
    data = "\n".join(json.dumps(one) for one in objects).encode()
    whole, cut = Picker(MetricSource()), Picker(MetricSource())
    points = whole.feed(data, 0.0) + whole.close(0.0)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    again = [point for piece in pieces for point in cut.feed(piece, 0.0)] + cut.close(0.0)
    assert plain(points) == plain(again) == plain(unpack(pack(points)))


def plain(points: list[Point]) -> list[object]:
    return [
        (p.step, {name: "nan" if math.isnan(value) else value for name, value in p.values.items()})
        for p in points
    ]


LONG = {  # texts of lines that a pattern could go through again and again
    "spaces before a bar": "Epoch 1" + " " * 1900 + "! loss",
    "digits": "loss: " + "1" * 1900 + "_",
    "digits in a bar": "1%|#| 1/2 [00:01<00:02, 5.1it/s, loss=" + "1" * 1900 + "_]",
    "thousands": "loss " + "1,111" * 380 + "_",
    "words": "loss " + "a." * 950 + "_",
    "quotes": "{" + "'loss':" * 280 + "_}",
    "a name as long as a megabyte": "a" + "_" * 1_000_000,
}


@pytest.mark.parametrize("name", LONG)
def test_no_line_takes_long_to_look_at(name: str) -> None:
    began = time.process_time()
    for ending in ("", "_", "x1"):
        pick(f"loss: 1.0\n{LONG[name]}{ending}\nloss: 0.5\n")
    assert time.process_time() - began < 1.0
