"""The checker finds violations planted in gangs, searches, scripts by hand and shared processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from checker import FENCED, LEFT, ONE_END, STEPS, WEIGHTS, check
from made_evidence import FIRST, GANG, HAND, SECOND, TRIALS, Made, make

LATER = "000002"  # the attempt that led to the result


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make(tmp_path / "evidence")


def test_evidence_of_each_kind_of_run_passes(made: Made) -> None:
    assert check(made.folder) == []


# Gangs


def points_of_a_worker_without_a_place(made: Made) -> None:
    newest = made.path(f"runs/{GANG}/metrics/{LATER}-0001-*")
    shutil.copy(newest, newest.with_name(f"{LATER}-0007-00000000"))


def gang_that_went_with_one(made: Made) -> None:
    made.edit(f"runs/{GANG}/gang/{LATER}/go.json", lambda go: go["nodes"].pop())


def worker_with_two_places(made: Made) -> None:
    made.edit(f"runs/{GANG}/gang/{LATER}/go.json", lambda go: go.update(nodes=[{"slot": 0}, {"slot": 0}]))


def checkpoint_of_a_gang_that_never_went(made: Made) -> None:
    made.path(f"runs/{GANG}/gang/{LATER}/go.json").unlink()


def checkpoint_without_the_part_of_a_rank(made: Made) -> None:
    made.edit(f"runs/{GANG}/checkpoints/{LATER}-*/COMMIT", lambda commit: commit["files"].pop())


def step_of_another_rank_missing(made: Made) -> None:
    made.points(f"runs/{GANG}/metrics/{LATER}-0001-*", lambda points: points[1:])


def step_of_another_rank_twice(made: Made) -> None:
    made.points(f"runs/{GANG}/metrics/{LATER}-0001-*", lambda points: [*points, points[-1]])


def end_of_the_gang_that_was_lost(made: Made) -> None:
    made.edit(f"sweeps/gang/log/{GANG}-000003.json", lambda end: end.update(attempt=1))


# A script by hand


def end_that_the_dead_script_had_left(made: Made) -> None:
    end = {"kind": "end", "attempt": 1, "state": "done", "token": "late"}
    made.put(f"sweeps/hand/log/{HAND}-000004.json", end)


def script_that_repeats_steps_after_its_checkpoint(made: Made) -> None:
    made.points(f"runs/{HAND}/metrics/{LATER}-0000-*", lambda points: [points[0], *points])


def script_that_went_on_from_another_moment(made: Made) -> None:
    made.edit(f"runs/{HAND}/checkpoints/000001-*/COMMIT", lambda commit: commit.update(position=2))


def script_with_another_result(made: Made) -> None:
    for part in ("log", "ends"):
        made.edit(f"sweeps/hand/{part}/{HAND}-000003.json", lambda end: end.update(result={"w": "other"}))


def folder_of_a_script_that_has_ended(made: Made) -> None:
    made.told({"what": "left", "files": ["/tmp/cache/alone/1"]})


# A search


def trial_beyond_the_budget(made: Made) -> None:
    made.put("sweeps/tpe/journal/000004.json", {"params": {"x": 3}})


def hole_in_the_journal(made: Made) -> None:
    made.path("sweeps/tpe/journal/000002.json").unlink()


def trial_trained_by_two_runs(made: Made) -> None:
    for part in ("log", "ends"):
        for path in (made.folder / f"store/sweeps/tpe/{part}").glob(f"{TRIALS[0]}-*"):
            shutil.copy(path, path.with_name(path.name.replace(TRIALS[0], "0000003-tpe-ffffff")))


def trial_that_nobody_trained(made: Made) -> None:
    for path in (made.folder / "store/sweeps/tpe/log").glob(f"{TRIALS[2]}-*"):
        path.unlink()


# A process that several runs share


def values_of_the_neighbour(made: Made) -> None:
    other = made.path(f"runs/{SECOND}/metrics/{LATER}-*")
    shutil.copy(other, made.path(f"runs/{FIRST}/metrics/{LATER}-*"))


def weights_of_the_neighbour(made: Made) -> None:
    for path in (made.folder / f"store/runs/{SECOND}/checkpoints").rglob("*"):
        if path.is_file():
            shutil.copy(path, str(path).replace(SECOND, FIRST))


def one_of_the_process_has_no_end(made: Made) -> None:
    made.path(f"sweeps/pair/log/{SECOND}-000003.json").unlink()


def reader_shows_the_neighbours_curve(made: Made) -> None:
    row = {"state": "done", "attempts": 2, "curves": {"loss0": [[n, 0.5] for n in range(6)]}}
    made.told({"what": "read", "reader": "hostler df", "when": "after", "runs": {FIRST: row}})


PLANTED: dict[str, list[Callable[[Made], None]]] = {
    ONE_END: [
        end_of_the_gang_that_was_lost,
        end_that_the_dead_script_had_left,
        trial_beyond_the_budget,
        hole_in_the_journal,
        trial_trained_by_two_runs,
        trial_that_nobody_trained,
        one_of_the_process_has_no_end,
    ],
    FENCED: [
        points_of_a_worker_without_a_place,
        gang_that_went_with_one,
        worker_with_two_places,
        checkpoint_of_a_gang_that_never_went,
        script_that_went_on_from_another_moment,
        reader_shows_the_neighbours_curve,
    ],
    STEPS: [
        step_of_another_rank_missing,
        step_of_another_rank_twice,
        script_that_repeats_steps_after_its_checkpoint,
        values_of_the_neighbour,
    ],
    WEIGHTS: [checkpoint_without_the_part_of_a_rank, script_with_another_result, weights_of_the_neighbour],
    LEFT: [folder_of_a_script_that_has_ended],
}
ROWS = [(rule, plant) for rule, plants in PLANTED.items() for plant in plants]


@pytest.mark.parametrize(("rule", "plant"), ROWS, ids=[f"{r}: {p.__name__}" for r, p in ROWS])
def test_violation_planted_in_a_run_of_its_kind_is_found(
    made: Made, rule: str, plant: Callable[[Made], None]
) -> None:
    plant(made)
    assert rule in made.rules()
