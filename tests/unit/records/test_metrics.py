"""Points as bytes, and which of them a reader shows."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.errors import DamagedError, NewerFormatError, StoreUnreachable
from hostler.records import layout
from hostler.records.series import metrics
from hostler.records.series.metrics import FragmentCache, MetricWriter, Origin
from hostler.records.series.points import Packer, Point, Unpacker, pack, unpack
from hostler.store import Store
from hostler.store.memory import MemoryStore

RUN = "0000000-s-abc"

points = st.builds(
    Point,
    step=st.integers(-(2**63), 2**63 - 1),
    time=st.floats(0, 1e10),
    values=st.dictionaries(st.text(min_size=1, max_size=8), st.floats(), max_size=4),
)


def same(a: Point, b: Point) -> bool:
    bits = [{name: struct.pack("<d", value) for name, value in p.values.items()} for p in (a, b)]
    return (a.step, a.time, bits[0]) == (b.step, b.time, bits[1])


@given(st.lists(points, max_size=20))
def test_what_is_packed_is_unpacked_nan_and_infinity_too(given_points: list[Point]) -> None:
    found = unpack(pack(given_points))
    assert len(found) == len(given_points)
    assert all(map(same, found, given_points))


@given(st.lists(points, max_size=6), st.data())
def test_stream_cut_anywhere_gives_whole_points_and_the_rest_later(
    given_points: list[Point], data: st.DataObject
) -> None:
    stream = pack(given_points)
    cut = data.draw(st.integers(0, len(stream)))
    unpacker = Unpacker()
    first = unpacker.feed(stream[:cut])
    assert all(map(same, first, given_points))
    assert all(map(same, [*first, *unpacker.feed(stream[cut:])], given_points))
    assert len(unpack(stream[:cut])) == len(first)


def test_a_record_of_a_kind_not_known_is_skipped() -> None:
    packer = Packer()
    stream = packer.pack(Point(1, 0.0, {"a": 1.0})) + struct.pack("<IB", 3, 9) + b"xyz"
    assert [p.step for p in unpack(stream + packer.pack(Point(2, 0.0, {"a": 2.0})))] == [1, 2]


def by(attempt: int, *steps: int) -> list[Point]:
    return [Point(step, 0.0, {"by": float(attempt)}) for step in steps]


def shown(store: Store, attempt: int) -> list[tuple[int, int]]:
    return [(p.step, int(p.values["by"])) for p in metrics.read(store, RUN, attempt)]


def write(store: Store, attempt: int, origin: Origin | None, *pieces: list[Point]) -> MetricWriter:
    writer = MetricWriter(store, RUN, attempt)
    if origin or attempt > 1:
        writer.continue_from(origin)
    for piece in pieces:
        writer.write(piece)
    return writer


def test_the_curve_follows_the_checkpoints_that_led_to_it(store: Store) -> None:
    write(store, 1, None, by(1, 1, 2), by(1, 3, 4))
    write(store, 3, Origin(1, 1, position=3), by(3, 4, 5, 6))
    write(store, 5, Origin(3, 1, position=2), by(5, 6, 7))
    assert shown(store, 5) == [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3), (6, 5), (7, 5)]
    assert shown(store, 3) == [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3), (6, 3)]


def test_a_zombies_later_fragments_are_not_shown(store: Store) -> None:
    zombie = write(store, 1, None, by(1, 1, 2))
    write(store, 2, Origin(1, 1, position=2), by(2, 3))
    zombie.write(by(1, 3, 4, 5))
    assert shown(store, 2) == [(1, 1), (2, 1), (3, 2)]


def test_attempt_that_began_anew_hides_earlier_ones_without_a_point(store: Store) -> None:
    write(store, 1, None, by(1, 1, 2))
    write(store, 2, None)
    assert shown(store, 2) == []
    write(store, 2, None, by(2, 1))
    assert shown(store, 2) == [(1, 2)]


def test_an_attempt_that_never_began_hides_nothing(store: Store) -> None:
    write(store, 1, None, by(1, 1, 2))
    assert shown(store, 4) == [(1, 1), (2, 1)]


def test_one_that_only_ends_a_finished_run_shows_its_curve(store: Store) -> None:
    write(store, 1, None, by(1, 1, 2, 3))
    write(store, 2, Origin(1, 1, position=2))
    assert shown(store, 2) == [(1, 1), (2, 1)]


def test_step_measured_again_after_a_restart_shows_the_last_value(store: Store) -> None:
    write(store, 1, None, by(1, 1, 2, 3))
    write(store, 2, Origin(1, 1, position=3), by(2, 3, 4))
    assert shown(store, 2) == [(1, 1), (2, 1), (3, 2), (4, 2)]


def test_another_metric_of_the_same_step_stays(store: Store) -> None:
    write(store, 1, None, [Point(1, 0.0, {"by": 1.0, "val": 9.0})])
    write(store, 2, Origin(1, 1, position=1), by(2, 1))
    assert [dict(p.values) for p in metrics.read(store, RUN, 2)] == [{"val": 9.0}, {"by": 2.0}]


def test_an_origin_that_leads_forward_does_not_go_round(store: Store) -> None:
    write(store, 2, Origin(3, 1, position=1), by(2, 1))
    write(store, 3, Origin(3, 1, position=1), by(3, 2))
    assert shown(store, 3) == [(2, 3)]


def test_no_fragments_no_points(store: Store) -> None:
    assert metrics.read(store, RUN, 0) == metrics.read(store, RUN, 7) == []


def test_a_fragment_is_fetched_once(memory: MemoryStore) -> None:
    asked: list[str] = []
    memory.before = lambda operation, key: asked.append(operation)
    cache = FragmentCache()
    writer = write(memory, 1, None, by(1, 1))
    metrics.read(memory, RUN, 1, cache=cache)
    writer.write(by(1, 2))
    assert len(metrics.read(memory, RUN, 1, cache=cache)) == 2
    assert asked.count("get") == 2


def test_a_write_that_failed_has_not_moved_the_position(memory: MemoryStore) -> None:
    def unreachable(operation: str, key: str) -> None:
        raise StoreUnreachable("no")

    writer = MetricWriter(memory, RUN, 1)
    writer.write(by(1, 1))
    memory.before = unreachable
    with pytest.raises(StoreUnreachable):
        writer.write(by(1, 2))
    memory.before = None
    writer.write(by(1, 2))
    assert (writer.position, shown(memory, 1)) == (2, [(1, 1), (2, 1)])


def several(store: Store, attempt: int = 1, origin: Origin | None = None) -> MetricWriter:
    writer = MetricWriter(store, "0000000-r", attempt)
    if attempt > 1:
        writer.continue_from(origin)
    for n in range(4):
        writer.write([Point(10 * attempt + n, 1.0, {"a": float(n), **({"b": 1.0} if n == 2 else {})})])
    return writer


def test_one_fragment_of_all_says_what_the_many_said(memory: MemoryStore) -> None:
    several(memory).pack()
    second = several(memory, 2, Origin(1, 1, 2))
    before = metrics.read(memory, "0000000-r", 2)
    second.pack()
    second.pack()
    assert metrics.read(memory, "0000000-r", 2) == before and len(before) == 6
    assert len(list(memory.list(layout.metrics("0000000-r")))) == 2
    second.write([Point(99, 1.0, {"a": 9.0})])
    assert metrics.read(memory, "0000000-r", 2)[-1].step == 99
    second.pack()
    assert len(metrics.read(memory, "0000000-r", 2)) == 7


def test_a_long_curve_is_read_back_to_be_made_one(
    memory: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "SMALL", 60)
    writer = several(memory)
    before = metrics.read(memory, "0000000-r", 1)
    writer.pack()
    assert metrics.read(memory, "0000000-r", 1) == before
    assert len(list(memory.list(layout.metrics("0000000-r")))) == 1


@pytest.mark.parametrize("left", range(6))
def test_kill_during_a_merge_neither_loses_nor_doubles_points(memory: MemoryStore, left: int) -> None:
    several(memory).pack()
    writer = several(memory, 2, Origin(1, 1, 2))
    before = metrics.read(memory, "0000000-r", 2)
    deleted = list[str]()
    memory.delete = lambda *keys: deleted.extend(keys)  # type: ignore[method-assign]
    writer.pack()
    del memory.delete  # type: ignore[method-assign]
    memory.delete(*deleted[:left])
    assert metrics.read(memory, "0000000-r", 2) == before
    heir = MetricWriter(memory, "0000000-r", 2)
    assert len(heir.go_on()) == 4
    heir.write([Point(99, 1.0, {"a": 9.0})])
    assert [p.step for p in metrics.read(memory, "0000000-r", 2)] == [*(p.step for p in before), 99]


def test_a_reader_who_finds_a_fragment_gone_looks_again(memory: MemoryStore) -> None:
    writer = several(memory)
    wanted = metrics.read(memory, "0000000-r", 1)
    asked = list[str]()

    def before(op: str, key: str) -> None:
        if op == "get":
            asked.append(key)
            if len(asked) == 2:
                writer.pack()

    memory.before = before
    assert metrics.read(memory, "0000000-r", 1) == wanted


def test_damaged_and_newer_fragments_are_told_apart(memory: MemoryStore) -> None:
    key = layout.metric_fragment(RUN, 1, 0, 0)
    memory.put(key, b"garbage here")
    with pytest.raises(DamagedError, match="fragment"):
        metrics.read(memory, RUN, 1)
    memory.put(key, struct.pack("<4sHI", b"HSTM", 2, 0))
    with pytest.raises(NewerFormatError):
        metrics.read(memory, RUN, 1)


@pytest.mark.parametrize("cut", [11, 30, 60])
def test_a_fragment_whose_header_is_cut_is_damaged(memory: MemoryStore, cut: int) -> None:
    write(memory, 1, None, by(1, 1))
    key = layout.metric_fragment(RUN, 1, 0, 0)
    memory.put(key, memory.get(key).data[:cut])
    with pytest.raises(DamagedError):
        metrics.read(memory, RUN, 1)


def test_summary_has_extremes_of_numbers_and_any_last_value() -> None:
    values = [3.0, 1.0, math.nan, 2.0]
    found = metrics.summary([Point(s, 0.0, {"x": v}) for s, v in enumerate(values, 1)])
    steps = {"min_step": 2, "max_step": 1, "step": 4}
    assert found == {"x": {"min": 1.0, "max": 3.0, "last": 2.0, **steps}}
    found = metrics.summary([Point(s, 0.0, {"x": v}) for s, v in enumerate([math.nan, 5.0, math.nan], 1)])
    assert (found["x"]["min"], found["x"]["max"], math.isnan(found["x"]["last"])) == (5.0, 5.0, True)


def test_nan_between_values_hides_neither_the_least_nor_the_most() -> None:
    points = [Point(n, 0.0, {"loss": v}) for n, v in enumerate([float("nan"), 3.0, float("nan"), 5.0, 4.0])]
    row = metrics.summary(points)["loss"]
    assert (row["min"], row["max"], row["last"]) == (3.0, 5.0, 4.0)
