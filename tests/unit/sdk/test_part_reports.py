"""Rank 0 waits for the parts of the others as long as they may come, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import StoreError
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import FileSum, Mark
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.folder import PartReports, ToldFromAfar, ToldHere, told, wait_for
from hostler.sdk.checkpoint.policy import SavePolicy
from hostler.sdk.ranks.board import Board, Note

ROWS = [FileSum("state-0001.json", [(3, 7)])]


class Notes:
    """A board of which everybody reads the same notes; `gone` are dead."""

    def __init__(self, *, shared: bool) -> None:
        self.shared, self.notes, self.gone = shared, dict[str, Note](), set[str]()

    def post(self, name: str, value: Note) -> None:
        self.notes[name] = value

    post_surely = post

    def read(self, name: str) -> Note | None:
        return self.notes.get(name)

    def clear(self, name: str) -> None:
        self.notes.pop(name, None)

    def alive(self, name: str) -> bool:
        return name not in self.gone


@pytest.fixture(params=["here", "from afar"])
def board(request: pytest.FixtureRequest) -> Notes:
    return Notes(shared=request.param == "here")


@pytest.fixture
def parts(tmp_path: Path, board: Notes) -> Iterator[PartReports]:
    made: Board = board
    found = told(tmp_path, made)
    assert isinstance(found, ToldHere if board.shared else ToldFromAfar)
    yield found


def wait(parts: PartReports, mark: Mark, pause: Callable[[float], None]) -> list[FileSum]:
    return wait_for(parts, mark, [1], clock=lambda: 0.0, pause=pause)


def never(seconds: float) -> None:
    raise AssertionError("waits")


def test_reported_part_is_there_and_forgotten_on_demand(parts: PartReports, board: Notes) -> None:
    parts.tell(Mark(4), 1, ROWS)
    assert [row.name for row in wait(parts, Mark(4), never)] == ["state-0001.json"]
    parts.forget(Mark(4), [1])
    assert board.shared or not [name for name in board.notes if name.startswith("part-")]


def test_a_part_is_waited_for_while_it_may_come(parts: PartReports) -> None:
    parts.tell(Mark(2), 1, ROWS)
    looks = list[float]()

    def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            parts.tell(Mark(4), 1, ROWS)

    assert wait(parts, Mark(4), pause) and len(looks) == 3


def test_a_rank_that_has_gone_on_is_not_waited_for(parts: PartReports) -> None:
    parts.tell(Mark(5), 1, ROWS)
    with pytest.raises(StoreError, match=r"rank 1 went on to step-0+5 without writing its part of step-0+4$"):
        wait(parts, Mark(4), never)


def test_gone_rank_is_not_waited_for_and_its_reports_count(parts: PartReports, board: Notes) -> None:
    board.gone.add("ranks/1")
    with pytest.raises(StoreError, match=r"rank 1 is gone without writing its part of step-0+4$"):
        wait(parts, Mark(4), never)
    parts.tell(Mark(4), 1, ROWS)
    assert wait(parts, Mark(4), never)


def test_a_rank_that_says_it_has_none_is_believed(parts: PartReports) -> None:
    parts.tell(Mark(4), 1, None)
    with pytest.raises(StoreError, match=r"rank 1 could not write its part of step-0+4$"):
        wait(parts, Mark(4), never)


def test_silent_rank_is_waited_for_no_longer_than_a_bound(parts: PartReports) -> None:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += 100

    with pytest.raises(StoreError, match=r"rank 1 has not written its part of step-0+4 within 600 s"):
        wait_for(parts, Mark(4), [1], clock=lambda: now[0], pause=pause)


def test_later_checkpoint_of_another_course_says_nothing_of_this_one(tmp_path: Path) -> None:
    parts = ToldHere(tmp_path)
    parts.tell(Mark(9), 1, ROWS)
    (tmp_path / Mark(9).name / saved_folder.COMMIT).write_bytes(b"damaged")
    assert parts.over(Mark(4), 1) == ""


class Bad:
    def state_dict(self) -> dict[str, Any]:
        raise RuntimeError("not now")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Never called."""


def test_rank_0_ends_though_another_rank_skipped_a_save(tmp_path: Path) -> None:
    said = list[str]()
    first, second = (
        Checkpointer(tmp_path, policy=SavePolicy(every_steps=1), say=said.append, rank=rank, world=2)
        for rank in range(2)
    )
    first.save(4, {})
    second.save(5, {}, finished={})
    first.save(5, {}, finished={})
    assert saved_folder.committed(tmp_path) == [Mark(5)]
    assert len(said) == 1 and "rank 1 went on to step-000000000005" in said[0]
    assert not (tmp_path / Mark(4).name).exists()


def test_state_one_rank_cannot_save_does_not_block_rank_0(tmp_path: Path) -> None:
    said = list[str]()
    first, second = (
        Checkpointer(tmp_path, policy=SavePolicy(every_steps=1), say=said.append, rank=rank, world=2)
        for rank in range(2)
    )
    second.track(thing=Bad())
    second.save(4, {})
    first.save(4, {})
    assert first.wait(30) and saved_folder.committed(tmp_path) == []
    assert "RuntimeError: not now" in said[0] and "rank 1 could not write its part" in said[1]
