"""Lines of common tools become the points they show, and other lines none.

`tests/tool_logs/with` has excerpts with the points they hold (name, step, value), `without` has excerpts that
hold numbers and no metric.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.records.series import metric_names
from hostler.records.series.metric_names import Reading
from hostler.records.series.picker import PATIENCE, Picker
from hostler.records.series.plain_lines import PlainLines
from hostler.records.series.points import Point
from hostler.spec.job import MetricSource

LOGS = Path(__file__).parents[2] / "tool_logs"
WITH = sorted((LOGS / "with").glob("*.log"))
WITHOUT = sorted((LOGS / "without").glob("*.log"))

PIECES = [
    "loss",
    "acc",
    ": ",
    "=",
    "0.5",
    " ",
    "\n",
    "epoch 3",
    "[1]\t",
    "9/20 ",
    "%|#|",
    "{'",
    "'}",
    "│",
    "DataLoader 0",
    "Epoch 0/9 ━━ 2/2 0:00:01 • 0:00:00 9.1it/s v_num: 0.000 ",
]

Row = tuple[str, int, str]


def rows(points: list[Point]) -> list[Row]:
    return [(name, point.step, repr(value)) for point in points for name, value in point.values.items()]


def picked(data: bytes, source: MetricSource = MetricSource(), size: int | None = None) -> list[Row]:
    picker, step = Picker(source), size or len(data) or 1
    points = [p for at in range(0, len(data), step) for p in picker.feed(data[at : at + step], 1.0)]
    return rows(points + picker.close(1.0))


def expected(path: Path) -> list[Row]:
    lines = path.with_suffix(".points").read_text().splitlines()
    return [(name, int(step), value) for name, step, value in map(str.split, lines)]


def test_corpus_has_fifty_logs_of_each_kind() -> None:
    assert len(WITH) >= 50 and len(WITHOUT) >= 50


@pytest.mark.parametrize("path", WITH, ids=lambda path: path.stem)
def test_log_of_a_tool_gives_exactly_its_points(path: Path) -> None:
    assert picked(path.read_bytes()) == expected(path)


@pytest.mark.parametrize("path", WITHOUT, ids=lambda path: path.stem)
def test_log_without_metrics_gives_no_point(path: Path) -> None:
    assert picked(path.read_bytes()) == []


@pytest.mark.parametrize("path", WITH, ids=lambda path: path.stem)
def test_log_cut_into_pieces_gives_the_same_points(path: Path) -> None:
    assert picked(path.read_bytes(), size=7) == expected(path)


@pytest.mark.parametrize("path", WITH, ids=lambda path: path.stem)
def test_metrics_none_and_json_recognise_no_tool(path: Path) -> None:
    assert picked(path.read_bytes(), MetricSource(json_lines=False)) == []
    assert picked(path.read_bytes(), MetricSource(tools=False)) == []


def test_pattern_of_its_own_recognises_no_tool() -> None:
    source = MetricSource(pattern=r"dice (?P<dice>[\d.]+)")
    assert picked(b"loss: 0.5\ndice 0.7\nloss: 0.4\n", source) == [("dice", 0, "0.7")]


def test_json_line_stops_recognition_without_double_points() -> None:
    printed = b'epoch 0: loss=0.5\n{"epoch": 0, "loss": 0.5}\nepoch 1: loss=0.4\n{"epoch": 1, "loss": 0.4}\n'
    losses = [row for row in picked(printed) if row[0] == "loss"]
    assert losses == [("loss", 0, "0.5"), ("loss", 1, "0.4")]


def test_library_point_stops_recognition_of_later_lines() -> None:
    picker = Picker(MetricSource())
    assert picker.feed(b"epoch 0: loss=0.5\n", 1.0) == []  # it waits for the script's own
    picker.stand_down()
    assert picker.feed(b"epoch 1: loss=0.4\nepoch 2: loss=0.3\n", 2.0) + picker.close(3.0) == []
    assert picker.recognised == []


def test_first_line_of_a_tool_waits_no_longer_than_patience() -> None:
    picker = Picker(MetricSource())
    assert picker.feed(b"epoch 0: loss=0.5\n", 1.0) == [] == picker.feed(b"", PATIENCE)
    assert rows(picker.feed(b"", 1.0 + PATIENCE)) == [("loss", 0, "0.5")]
    assert rows(picker.feed(b"epoch 1: loss=0.4\n", 20.0)) == [("loss", 1, "0.4")]
    assert picker.recognised == ["loss"]


def test_progress_bar_gives_one_value_for_each_step() -> None:
    bar = "\r".join(f" 45%|#  | {n // 100}/20 [00:01<00:02, 5.1it/s, loss=0.{n:04}]" for n in range(2000))
    assert [step for _, step, _ in picked(bar.encode())] == list(range(20))


def test_resumed_run_counts_on_where_lines_have_no_step() -> None:
    picker = Picker(MetricSource())
    picker.continue_from(7)
    assert rows(picker.feed(b"loss: 0.5\nloss: 0.4\n", 1.0)) == [("loss", 7, "0.5"), ("loss", 8, "0.4")]


def test_resumed_run_keeps_the_steps_of_its_lines() -> None:
    picker = Picker(MetricSource())
    picker.continue_from(7)
    found = picker.feed(b"iter 5: loss 0.5\niter 6: loss 0.4\n", 1.0)
    assert rows(found) == [("loss", 5, "0.5"), ("loss", 6, "0.4")]


def test_resumed_bar_goes_on_after_the_restored_step() -> None:
    again, same = Picker(MetricSource()), Picker(MetricSource())
    for picker in (again, same):
        picker.continue_from(41)
    line = " 5%|#  | {}/20 [00:01<00:02, 5.1it/s, loss=0.5]\r"
    fresh = again.feed((line.format(1) + line.format(2)).encode(), 1.0)
    assert [point.step for point in fresh] == [41, 42]
    whole = same.feed((line.format(41) + line.format(42)).encode(), 1.0)
    assert [point.step for point in whole] == [41, 42]


def test_resumed_steps_of_an_epoch_count_on_after_the_restored_step() -> None:
    picker = Picker(MetricSource())
    picker.continue_from(401)
    printed = b"Epoch 3 Step 100 Loss 0.3\nEpoch 3 Step 200 Loss 0.2\nEpoch 4 Step 100 Loss 0.1\n"
    assert [point.step for point in picker.feed(printed, 1.0)] == [500, 600, 700]


def test_resumed_steps_of_all_epochs_stay_as_they_are() -> None:
    picker = Picker(MetricSource())
    picker.continue_from(401)
    printed = b"Epoch 3 Step 390 Loss 0.3\nEpoch 4 Step 500 Loss 0.2\nEpoch 5 Step 500 Acc 0.5\n"
    assert [point.step for point in picker.feed(printed, 1.0)] == [390, 500, 500]


def test_resumed_rounds_that_begin_at_zero_count_on() -> None:
    again, same = Picker(MetricSource()), Picker(MetricSource())
    for picker in (again, same):
        picker.continue_from(3)
    found = again.feed(b"[0]\ttrain-logloss:0.38670\n[1]\ttrain-logloss:0.35152\n", 1.0)
    assert [point.step for point in found] == [3, 4]
    found = same.feed(b"[3]\ttrain-logloss:0.38670\n[4]\ttrain-logloss:0.35152\n", 1.0)
    assert [point.step for point in found] == [3, 4]


LINES = [line for path in (*WITH, *WITHOUT) for line in path.read_text().splitlines()]
NUMBERS = st.sampled_from(
    ["0", "7", "12", "0.5", "3.25", "-0.5", "+2", "1e-05", "5.", ".5", "nan", "1,024", "0:09"]
)


@given(st.sampled_from(LINES), st.lists(NUMBERS, min_size=1, max_size=6))
def test_remembered_shape_reads_numbers_as_a_fresh_reader(line: str, numbers: list[str]) -> None:
    """Every number of a line replaced by others, after lines with the shapes that these make."""
    texts, known = [line], PlainLines()
    for number in numbers:
        texts.append(re.sub(r"\d+(?:\.\d+)?", lambda _, number=number: number, line))
        texts.append(re.sub(r"\d+(?:\.\d+)?$", number, texts[-2]))
    for text in map(str.strip, texts):
        fresh = PlainLines().read(text)
        assert repr(known.known(text) or known.read(text)) == repr(fresh), text


def test_shape_of_a_tool_line_is_taken_apart_once() -> None:
    lines = PlainLines()
    assert lines.known("epoch 1 | loss=0.5 | lr=0.001") is None
    assert lines.read("epoch 1 | loss=0.5 | lr=0.001") == Reading({"loss": 0.5, "lr": 0.001}, 1)
    assert lines.known("epoch 20 | loss=2.25 | lr=1e-05") == Reading({"loss": 2.25, "lr": 1e-05}, 20)
    assert lines.known("epoch 20 | loss=2 | lr=0.001") is None  # a whole number is another shape


def test_rounds_after_a_resume_begin_where_the_model_ends() -> None:
    for covered in (3, 4, 6):  # the worker saw fewer rounds than the model has, as many, or more
        picker = Picker(MetricSource())
        picker.continue_from(covered, rounds=4)
        found = picker.feed(b"[0]\ttrain-logloss:0.38670\n[1]\ttrain-logloss:0.35152\n", 1.0)
        assert [point.step for point in found] == [4, 5]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=12))
def test_no_text_makes_a_recogniser_raise(pieces: list[str]) -> None:
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    assert picked(data, size=5) == picked(data)


def test_metric_after_dull_lines_of_its_shape_is_still_found() -> None:
    dull = b"".join(b"f%d: 0.5\nmodel x: 0.5 of it\nstep 3, lost: 0.%d\n" % (n, n) for n in range(2, 9))
    found = picked(dull + b"f1: 0.5\nstep 3, loss: 0.2\n")
    assert found == [("f1", 0, "0.5"), ("loss", 3, "0.2")]


def test_every_metric_word_passes_the_cheap_look() -> None:
    for word in sorted(metric_names.STRONG | {f"val_{weak}" for weak in metric_names.WEAK}):
        assert picked(f"step 1, {word}: 0.5\n".encode()) == [(word, 1, "0.5")], word
