from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hostler.errors import HostUnreachable, UsageError
from hostler.records.series.points import Packer, Point
from hostler.trackers import base
from hostler.trackers.base import Closing, Opened, Opening, flat, run_id, without
from hostler.trackers.feed_folder import CLOSED, FAILED, FeedFolder, FeedState
from hostler.trackers.feeder import Feeder, one_line

OPENING = Opening("fake", "id", "run", "name", "sweep", "project", 2, "", config={"a": {"b": 1}}, tags=("t",))


@dataclass
class Fake:
    """A tool that fails so many times at first."""

    trouble: list[Exception] = field(default_factory=list)
    got: list[Point] = field(default_factory=list)
    flushed: int = 0
    closed: Closing | None = None

    def open(self, opening: Opening) -> Opened:
        self._fail()
        assert opening == OPENING
        return Opened(url="http://here", note="a word")

    def log(self, points: Sequence[Point]) -> None:
        self._fail()
        self.got += points

    def flush(self) -> None:
        self.flushed += 1

    def close(self, closing: Closing) -> None:
        self.closed = closing

    def _fail(self) -> None:
        if self.trouble:
            raise self.trouble.pop(0)


@pytest.fixture
def desk(tmp_path: Path) -> FeedFolder:
    made = FeedFolder(tmp_path)
    made.lay(OPENING)
    return made


def give(desk: FeedFolder, *steps: int) -> list[Point]:
    points, packer = [Point(step, 1.0, {"loss": step / 2}) for step in steps], Packer()
    with open(desk.points, "ab") as file:
        file.write(b"".join(map(packer.pack, points)))
    return points


def test_all_points_go_before_the_end_with_its_outcome(desk: FeedFolder) -> None:
    points, tool = give(desk, 1, 2, 3), Fake()
    desk.close(Closing("done", {"late": 1}, ("new",), {"x": 1}, 5.0))
    assert Feeder(desk, tool, lambda: False, sleep=pytest.fail).run()
    assert tool.got == points
    assert tool.closed == Closing("done", {"late": 1}, ("new",), {"x": 1}, 5.0)
    told = desk.told()
    assert told == FeedState(CLOSED, "http://here", "a word", "", 3)


def test_new_points_are_passed_on_and_shown_now_and_then(desk: FeedFolder) -> None:
    tool, now, slept = Fake(), [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += 4.0
        if len(slept) == 1:
            give(desk, 1)
        if len(slept) == 4:
            desk.close(Closing())

    assert Feeder(desk, tool, lambda: False, sleep=sleep, clock=lambda: now[0]).run()
    assert [point.step for point in tool.got] == [1] and tool.flushed == 1


def test_a_server_that_does_not_answer_is_asked_again(desk: FeedFolder) -> None:
    waits: list[float] = []
    tool = Fake(trouble=[OSError("down"), OSError("down")])
    give(desk, 1)
    desk.close(Closing())
    assert Feeder(desk, tool, lambda: False, sleep=waits.append).run()
    assert waits == [1.0, 2.0] and len(tool.got) == 1


def test_missing_server_is_retried_and_that_is_reported_meanwhile(desk: FeedFolder) -> None:
    tool = Fake(trouble=[HostUnreachable("does not answer")])
    said: list[FeedState] = []
    desk.close(Closing())
    assert Feeder(desk, tool, lambda: False, sleep=lambda _: said.append(desk.told())).run()
    assert [(one.state, one.error) for one in said] == [("opening", "does not answer")]
    assert (desk.told().state, desk.told().error) == (CLOSED, "")


def test_what_no_second_try_can_cure_is_not_tried_again(desk: FeedFolder) -> None:
    feeder = Feeder(desk, Fake(trouble=[UsageError("no uri")]), lambda: False, sleep=pytest.fail)
    with pytest.raises(UsageError) as caught:
        feeder.run()
    feeder.fail(caught.value)
    assert (desk.told().state, desk.told().error) == (FAILED, "no uri")


def test_whoever_is_left_alone_delivers_nothing_more(desk: FeedFolder) -> None:
    tool = Fake()
    assert not Feeder(desk, tool, lambda: True, sleep=pytest.fail).run()
    assert tool.closed is None


def test_an_error_is_one_line() -> None:
    error = ValueError("1 error for Settings\nrun_tags\n  Tag 0 is empty")  # the first line says the least
    assert one_line(error) == "ValueError: 1 error for Settings run_tags Tag 0 is empty"
    assert one_line(ValueError()) == "ValueError"
    assert len(one_line(ValueError("x" * 999))) == 300


def test_id_belongs_to_one_submission_and_every_attempt_shares_it() -> None:
    assert run_id("s1", "0000000-a-b") == run_id("s1", "0000000-a-b")
    assert len({run_id("s1", "a"), run_id("s2", "a"), run_id("s1", "b")}) == 3
    assert len(run_id("s", "r")) == 32 and run_id("s", "r").isalnum()


def test_points_that_a_tool_holds_are_skipped_value_by_value() -> None:
    points = [Point(1, 0.0, {"a": 1.0, "b": 2.0}), Point(2, 0.0, {"a": 3.0})]
    assert without(points, {("a", 1)}) == [replace(points[0], values={"b": 2.0}), points[1]]
    assert without(points, {("A", 1), ("A", 2)}, str.upper) == [replace(points[0], values={"b": 2.0})]
    assert without(points, frozenset()) == points


def test_a_config_of_several_levels_becomes_one() -> None:
    assert flat({"a": {"b": {"c": 1}}, "d": [1], "e": {}}) == {"a.b.c": 1, "d": [1], "e": {}}


def test_openings_and_closings_survive_the_folder(desk: FeedFolder) -> None:
    assert desk.opening() == OPENING
    assert base.closing(base.to_json(Closing("done", tags=("a",)))) == Closing("done", tags=("a",))
    assert desk.closing() is None
