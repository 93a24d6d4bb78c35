"""What `plan` prints, word for word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hostler.cli.run import forecast
from hostler.fleet.edit import edit, first, searched
from hostler.fleet.preview import Outlook
from hostler.spec import space, spans
from hostler.spec.job import Budget, Job
from hostler.spec.project import Fleet
from hostler.spec.rounds import Round

GOLDEN = Path(__file__).parents[2] / "golden" / "sweep_plan.txt"


def file(parameters: dict[str, object]) -> Job:
    found = space.parse(parameters)
    one = Round(found, spans.whole(found.count), ("python", "train.py"))
    return Job(name="lr-search", command=one.command, runs=(), rounds=(one,), method="grid")


def test_the_plan_of_an_edited_sweep_reads_as_it_did() -> None:
    old = file({"lr": [0.1, 0.01, 0.001], "width": [64, 128], "epochs": 30})
    new = file({"lr": [0.1, 0.01, 0.5], "width": [64, 128, 256], "epochs": 30})
    found = Outlook(
        edit(old, new, started={0, 1, 2, 4}),
        True,
        {"queued": 1, "running": 1, "done": 2},
        other_code=("lr-search/0", "lr-search/1"),
        again=("lr-search/2",),
        left={"done": 1},
        seconds=90.0,
    )
    text = "\n".join(forecast.lines(found, Fleet("burst", "local", workers=2, price=1.5))) + "\n"
    assert text == GOLDEN.read_text()


def test_a_single_run_is_shown_and_not_left_out() -> None:
    def shown(runs: int) -> list[str]:
        found = Outlook(first(file({"lr": list(range(runs))})), False)
        lines = list(forecast.lines(found, Fleet("desk", "local")))
        return [line.strip() for line in lines if "lr=" in line or line.strip() == "…"]

    assert shown(6) == [f"{n}  lr={n}" for n in range(6)]
    assert shown(7) == ["0  lr=0", "1  lr=1", "2  lr=2", "…", "5  lr=5", "6  lr=6"]


def test_the_json_says_the_same() -> None:
    found = Outlook(first(file({"lr": [1, 2, 3]})), False)
    said = forecast.as_json(found, Fleet("desk", "local"))
    assert (said["runs"], said["new"], said["open"], said["cost"]) == (3, 3, 3, None)
    assert [one["params"] for one in said["first"]] == [{"lr": 1}, {"lr": 2}, {"lr": 3}]


def test_the_rest_costs_what_its_time_costs() -> None:
    found = Outlook(first(file({"lr": list(range(10))})), False, seconds=360.0)
    assert forecast.cost(found, Fleet("burst", "local", workers=5, price=2.0)) == 2.0
    assert forecast.cost(found, Fleet("desk", "local")) is None


def test_plan_of_a_search_counts_runs_to_choose() -> None:
    search: dict[str, object] = {"parameters": {"x": {"min": 0, "max": 1}}, "method": "tpe"}
    old = Job("t", ("x",), runs=tuple({"x": n} for n in range(4)), search=search, budget=Budget(runs=4))
    new = replace(old, budget=Budget(runs=6))
    found = Outlook(searched(old, new), True, {"done": 4})
    lines = list(forecast.lines(found, Fleet("here", "local")))
    assert "  4 done, 2 to be chosen" in lines
    assert "  …" not in lines, "all four are shown"
