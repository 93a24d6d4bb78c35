"""An edited file, compared with the sweep in the store."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.errors import UsageError
from hostler.fleet.edit import Edit, edit, first, instead, searched
from hostler.spec import job as jobs
from hostler.spec import space, spans
from hostler.spec.job import Job
from hostler.spec.rounds import Round


def file(parameters: dict[str, object], command: tuple[str, ...] = ("x",), **given: object) -> Job:
    found = space.parse(parameters, **given)  # type: ignore[arg-type]
    one = Round(found, spans.whole(found.count), command)
    return Job(name="s", command=command, runs=(), rounds=(one,), method="grid")


def params(found: Edit, indices: spans.Spans) -> list[dict[str, object]]:
    return [dict(found.job.params(i)) for i in indices]


def test_a_file_that_was_never_submitted_is_all_new() -> None:
    found = first(file({"lr": [1, 2, 3]}))
    assert (found.runs, list(found.new), list(found.kept)) == (3, [0, 1, 2], [])


def test_the_same_file_again_has_nothing_new() -> None:
    old = jobs.from_json(jobs.to_json(file({"lr": [1, 2]})))
    found = edit(old, file({"lr": [1, 2]}), started={0})
    assert (list(found.new), list(found.kept), found.job.count) == ([], [0, 1], 2)


def test_runs_in_the_file_again_keep_index_and_id() -> None:
    old = file({"lr": [1, 2], "w": [1, 2]})
    ids = [old.run_id(i) for i in range(4)]
    found = edit(old, file({"lr": [1, 2, 3], "w": [1, 2]}), started={0, 1})
    assert [found.job.run_id(i) for i in range(4)] == ids
    assert params(found, found.new) == [{"lr": 3, "w": 1}, {"lr": 3, "w": 2}]
    assert list(found.new) == [4, 5]
    assert list(found.kept) == [0, 1, 2, 3]


def test_removed_runs_are_dropped_unless_started() -> None:
    old = file({"lr": [1, 2, 3, 4]})
    found = edit(old, file({"lr": [1, 4]}), started={0, 1})
    assert list(found.dropped) == [2]
    assert list(found.left) == [1]
    assert list(found.job.dropped) == [2]
    assert not found.new and found.runs == 2


def test_dropped_run_that_returns_keeps_its_index() -> None:
    old = file({"lr": [1, 2, 3]})
    less = edit(old, file({"lr": [1]}), started={0}).job
    back = edit(less, file({"lr": [1, 3]}), started={0})
    assert (list(back.kept), list(back.new), list(back.job.dropped)) == ([0, 2], [], [1])
    whole = edit(less, file({"lr": [1, 2, 3]}), started={0})
    assert (list(whole.kept), list(whole.job.dropped)) == ([0, 1, 2], [])


def test_a_third_round_still_knows_the_first() -> None:
    two = edit(file({"lr": [1]}), file({"lr": [1, 2]}), started={0}).job
    three = edit(two, file({"lr": [2, 3]}), started={0, 1})
    assert params(three, three.kept) == [{"lr": 2}]
    assert params(three, three.new) == [{"lr": 3}]
    assert three.job.params(0) == {"lr": 1}


def test_more_random_draws_add_to_existing_ones() -> None:
    space_of = {"lr": {"min": 0.0, "max": 1.0}}
    old = file(space_of, method="random", runs=5, seed=3)
    found = edit(old, file(space_of, method="random", runs=8, seed=3), started=set(range(5)))
    assert (list(found.kept), list(found.new)) == ([0, 1, 2, 3, 4], [5, 6, 7])


def test_more_repeats_add_to_those_there_are() -> None:
    found = edit(file({"lr": [1, 2]}, repeat=2), file({"lr": [1, 2]}, repeat=3), started={0})
    assert (list(found.kept), list(found.new)) == ([0, 1, 2, 3], [4, 5])


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (file({"lr": [1, 2], "epochs": 50}), "epochs was 30 and is now 50"),
        (file({"lr": [1, 2], "epochs": 30, "w": 1}), "w is new"),
        (file({"lr": [1, 2]}), "epochs is gone"),
        (file({"lr": [1, 2], "epochs": 30}, ("y",)), "the command was x and is now y"),
        (file({"lr": [8, 9], "epochs": 30}), "none of the sweep's runs is in the file"),
    ],
)
def test_file_changing_started_runs_is_refused(new: Job, said: str) -> None:
    old = file({"lr": [1, 2], "epochs": 30})
    with pytest.raises(UsageError) as error:
        edit(old, new, started={0})
    assert "would change runs that have started" in error.value.message
    assert said in error.value.message
    assert "-o" in error.value.hint


def test_unstarted_sweep_of_the_same_name_is_refused() -> None:
    with pytest.raises(UsageError, match="the sweep 's' exists already"):
        edit(file({"lr": [1, 2]}), file({"depth": [1, 2]}), started=set())


def test_sweep_replacing_a_trashed_one_is_all_new() -> None:
    old = file({"lr": [1, 2]})
    found = edit(old, file({"lr": [1, 2]}), started={0, 1}, gone={0, 1}, anew=True)
    assert list(found.new) == [2, 3]
    other = edit(old, file({"z": [1]}, ("y",)), started={0}, gone={0}, anew=True)
    assert (list(other.new), list(other.job.dropped)) == ([2], [1])
    assert other.job.command_of(0) == ("x",) and other.job.command_of(2) == ("y",)
    assert other.job.run_id(0) == old.run_id(0)


def test_equal_configurations_run_once() -> None:
    old = file({"LIST a": [{"lr": 1}, {"lr": 2}]})
    found = edit(old, replace(file({"lr": [1, 2, 2, 3]})), started={0})
    assert params(found, found.new) == [{"lr": 3}]


VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True)


@given(st.lists(VALUES, min_size=1, max_size=5), st.data())
def test_repeated_edits_never_duplicate_or_change_runs(edits: list[list[int]], data: st.DataObject) -> None:
    job = file({"lr": edits[0]})
    started: set[int] = set()
    ids: dict[int, str] = {}
    for values in edits:
        try:
            found = edit(job, file({"lr": values}), started)
        except UsageError:
            assert not {job.params(i)["lr"] for i in job.indices()} & set(values)
            continue
        job = found.job
        marks = [job.mark(i) for i in range(job.count)]
        assert len(set(marks)) == len(marks)
        assert all(job.run_id(i) == one for i, one in ids.items())
        ids = {i: job.run_id(i) for i in range(job.count)}
        running = {job.params(i)["lr"] for i in job.indices()}
        assert running == set(values) | {job.params(i)["lr"] for i in started}
        started |= set(data.draw(st.lists(st.sampled_from(list(job.indices())), max_size=3)))


def search(runs: int = 0, command: tuple[str, ...] = ("x",)) -> Job:
    chosen = tuple({"lr": n} for n in range(runs))
    return Job(
        name="s", command=command, runs=chosen, method="tpe", search={"parameters": {"lr": {"max": 1}}}
    )


def test_search_replacing_another_continues_its_indices() -> None:
    old = search(3)
    ids = [old.run_id(i) for i in range(3)]
    found = instead(old, search(command=("y",)), started={0, 1})
    job = jobs.from_json(jobs.to_json(found.job))
    assert (job.count, job.journal_from, job.searched_from, list(job.dropped)) == (3, 3, 3, [2])
    assert [job.run_id(i) for i in range(3)] == ids, "what lies in the trash is found by its id"
    grown = replace(job, runs=({"lr": 9},))
    assert (grown.count, grown.params(3), grown.command_of(3)) == (4, {"lr": 9}, ("y",))
    assert (grown.command_of(0), grown.unchosen) == (("x",), 0)


def test_switching_grid_and_search_keeps_all_indices() -> None:
    grid = instead(search(3), file({"lr": [7, 8]}), started={0, 1, 2}).job
    assert (grid.count, [grid.params(i)["lr"] for i in range(5)]) == (5, [0, 1, 2, 7, 8])
    again = instead(grid, search(), started={0, 1, 2, 3}).job
    assert (again.count, again.journal_from, again.searched_from) == (5, 3, 5)
    assert list(again.dropped) == [4]
    edited = searched(replace(again, runs=({"lr": 1},)), replace(search(), parallel=2))
    assert (edited.job.journal_from, edited.job.parallel, list(edited.kept)) == (3, 2, [5])
