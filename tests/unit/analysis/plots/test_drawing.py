"""Plots: what is in them, and that nothing odd in a store breaks one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import servers
from hostler.analysis.plots import draw, importance, save
from hostler.analysis.plots.chart import STATES, Bars, Chart, Heat, Points, Polyline, ShadedArea
from hostler.analysis.plots.curveplots import average
from hostler.analysis.plots.drawing import KINDS
from hostler.analysis.plots.importance import importances
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.progress import completion, trend
from hostler.analysis.plots.results import results
from hostler.analysis.plots.source import PlottedCurve, source
from hostler.analysis.plots.with_plotly import figure
from hostler.analysis.report import report
from hostler.cli.main import cli
from hostler.cli.see.verbs import KINDS as OFFERED
from hostler.errors import MissingError, UsageError
from hostler.records import defaults
from hostler.records.checkpoint import archive
from hostler.records.series.points import Point
from hostler.spec.job import Job
from seen_world import HOSTILE, Seen, gallery, learning


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return gallery(tmp_path_factory.mktemp("seen") / "store")


def marks(chart: Chart, kind: type, panel: int = 0) -> list:
    return [mark for mark in chart.panels[panel].marks if isinstance(mark, kind)]


def test_the_command_offers_every_kind() -> None:
    assert list(KINDS) == OFFERED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sweep", ["cifar-grid", "odd-values", "empty", None])
@pytest.mark.parametrize("ending", ["png", "html"])
def test_every_kind_draws_every_sweep(
    seen: Seen, tmp_path: Path, kind: str, sweep: str | None, ending: str
) -> None:
    chart = draw(seen.url, kind, sweep, log_y=kind == "grid", top=3)
    path = save(chart, tmp_path / f"plot.{ending}")
    text = path.read_bytes()
    assert text.startswith(b"\x89PNG") if ending == "png" else b"Plotly" in text
    if ending == "html":
        assert HOSTILE.encode() not in text
        assert b'onerror="window' not in text


def test_results_are_grouped_by_any_parameter_with_each_groups_mean(seen: Seen) -> None:
    chart = draw(seen.url, "results", "cifar-grid", by="model")
    [axis] = [panel.x for panel in chart.panels]
    assert [name for _, name in axis.marks] == ["resnet18", "resnet50"]
    [mean], [points] = marks(chart, Polyline), marks(chart, Points)
    own = [y for x, y in zip(points.x, points.y, strict=True) if x == 1.0]
    assert mean.y[1] == pytest.approx(sum(own) / len(own))
    assert chart.note == "not shown: 2 runs without a value"


def test_results_go_by_section_where_there_are_sections(seen: Seen) -> None:
    runs = source(seen.store, "cifar-grid")
    split = [replace(run, row=replace(run.row, section=1 + run.row.index % 2)) for run in runs.runs]
    chart = results(replace(runs, runs=split), Look())
    assert chart.title == "accuracy by section"
    assert len(marks(chart, Polyline)[0].x) == 2


def test_repeats_are_averaged_with_a_band_in_panels(seen: Seen) -> None:
    chart = draw(seen.url, "grid", "cifar-grid", row="model", column="lr", legend="epochs")
    assert (len(chart.panels), chart.columns) == (12, 6)
    assert chart.panels[6].title == "model=resnet50, lr=3e-4"
    [line], [band] = marks(chart, Polyline), marks(chart, ShadedArea)
    curves = [[p.values["accuracy"] for p in learning({"lr": 0.0003, "seed": s})] for s in range(3)]
    assert line.y[0] == pytest.approx(sum(c[0] for c in curves) / 3)
    assert band.low[0] < line.y[0] < band.high[0]


def test_an_average_counts_each_curve_only_where_it_has_been() -> None:
    x, mean, deviation = average(
        [PlottedCurve("a", [0, 1, 2], [0, 1, 2]), PlottedCurve("b", [0, 2, 4], [4, math.nan, 8])]
    )
    assert x == [0, 1, 2, 4]
    assert mean == [2, pytest.approx(3), pytest.approx(4), 8]
    assert deviation[-1] == 0


def test_x_axis_is_step_time_or_metric_and_range_stays(seen: Seen) -> None:
    by_time = draw(seen.url, "best", "cifar-grid", x="time", low=0.5, high=1.0)
    assert max(marks(by_time, Polyline)[-1].x) == 39
    assert (by_time.panels[0].y.low, by_time.panels[0].y.high) == (0.5, 1.0)
    by_loss = draw(seen.url, "best", "cifar-grid", x="loss")
    assert max(marks(by_loss, Polyline)[-1].x) < 3
    assert figure(by_time)["layout"]["yaxis"]["range"] == [0.5, 1.0]
    wide = draw(seen.url, "best", "cifar-grid", log_y=True, low=0.1, high=1.0)
    assert figure(wide)["layout"]["yaxis"]["range"] == [-1.0, 0.0]


def test_less_is_better_where_the_goal_says_so(seen: Seen) -> None:
    best = source(seen.store, "cifar-grid", metric="loss").ranked
    assert best[0].value == min(run.value for run in best)
    assert source(seen.store, "cifar-grid", metric="loss", goal="max").ranked[0].value == max(
        r.value for r in best
    )
    trend = marks(draw(seen.url, "trend", "cifar-grid", metric="loss"), Polyline)[0]
    assert list(trend.y) == sorted(trend.y, reverse=True)


def test_what_matters_is_found_and_what_is_noise_is_not(seen: Seen) -> None:
    shares = importances(source(seen.store, "cifar-grid"))
    assert max(shares, key=lambda key: shares[key]) == "lr"
    assert shares["seed"] < 0.05
    assert set(shares) == {"lr", "model", "seed"}  # what does not differ explains nothing


def test_a_trend_marks_the_rounds_of_an_edited_search(tmp_path: Path) -> None:
    runs = source(gallery(tmp_path / "s").store, "cifar-grid")
    later = [replace(run, round=1 if run.row.index < 18 else 2) for run in runs.runs]
    chart = trend(replace(runs, runs=later), Look())
    ends = [mark for mark in marks(chart, Points) if mark.name == "end of a round"]
    assert [text.partition(":")[0] for text in ends[0].texts] == ["end of round 1", "end of round 2"]
    assert list(marks(completion(replace(runs, runs=later), Look()), Bars)[0].labels) == ["2", "1"]


def test_completion_draws_runs_that_a_pruner_paused_in_grey(seen: Seen) -> None:
    runs = source(seen.store, "cifar-grid")
    first, second, third = runs.runs[:3]
    chosen = [
        replace(first, row=replace(first.row, state="paused", paused_by="rung", rung=3)),
        replace(second, row=replace(second.row, state="paused", paused_by="pause")),
        third,
    ]
    bars = {bar.name: bar for bar in marks(completion(replace(runs, runs=chosen), Look()), Bars)}
    red, green, blue = (int(bars["paused at a rung"].colour[n : n + 2], 16) for n in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) < 24  # grey, as on the dashboard
    assert bars["paused"].colour == STATES["paused"] != bars["paused at a rung"].colour
    assert sum(bars["paused at a rung"].values) == sum(bars["paused"].values) == 1


def test_completion_counts_every_run_once(seen: Seen) -> None:
    bars = marks(draw(seen.url, "completion"), Bars)
    assert sum(sum(bar.values) for bar in bars) == 40
    by = {bar.name: sum(bar.values) for bar in bars}
    assert by == {"done": 33, "failed": 3, "diverged": 2, "running": 2}


def test_a_contour_is_of_two_parameters_that_may_be_named(seen: Seen) -> None:
    [heat] = marks(draw(seen.url, "contour", "cifar-grid", keys=("lr", "model")), Heat)
    assert len(heat.z) == len(heat.y)
    with pytest.raises(UsageError, match="two parameters"):
        draw(seen.url, "contour", "cifar-grid", keys=("lr",))


def test_the_best_of_all_sweeps_are_the_archives_curves(seen: Seen) -> None:
    lines = marks(draw(seen.url, "archive", top=4), Polyline)
    assert [line.name.split(":")[0] for line in lines][:2] == ["1. cifar-grid/21", "2. cifar-grid/22"]
    assert len(lines) == 4


def test_archived_sweep_is_drawn_after_its_deletion(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("old", [{"lr": 1}, {"lr": 2}])
    learned(seen, job, [(0.1, 0.9), (0.5, 0.7)])
    terms = archive.ArchiveTerms(2, "accuracy")
    archive.agree(seen.store, terms)
    for one in archive.candidates(seen.store, terms):
        archive.enter(seen.store, one, terms)
    seen.store.delete(*[entry.key for prefix in ("sweeps/", "runs/") for entry in seen.store.list(prefix)])
    lines = marks(draw(seen.url, "archive"), Polyline)
    assert [(line.name, list(line.y)) for line in lines] == [
        ("1. old/0: 0.9", [0.1, 0.9]),
        ("2. old/1: 0.7", [0.5, 0.7]),
    ]
    assert [list(line.x) for line in marks(draw(seen.url, "archive", x="time"), Polyline)] == [[0, 1], [0, 1]]
    with pytest.raises(MissingError, match="'nope'"):
        draw(seen.url, "archive", x="nope")


def test_money_is_drawn_where_runs_have_cost_some(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    learned(seen, seen.submit("free", [{"lr": 1}]), [(0.1, 0.9)])
    assert draw(seen.url, "cost").title == "accuracy against seconds"
    learned(seen, seen.submit("paid", [{"lr": 1}]), [(0.1, 0.9)], cost=1.25)
    chart = draw(seen.url, "cost")
    assert chart.title == "accuracy against cost"
    assert [list(mark.x) for mark in marks(chart, Points)] == [[1.25]]


def learned(seen: Seen, job: Job, curves: list[tuple[float, ...]], **facts: float) -> None:
    for index, values in enumerate(curves):
        seen.claim(job, index)
        points = [Point(step, float(step), {"accuracy": v}) for step, v in enumerate(values)]
        seen.end(job, index, "done", seen.curve(job, index, points), **facts)


def test_integer_too_large_for_an_axis_is_drawn_by_name(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    learned(seen, seen.submit("huge", [{"x": 10**400}, {"x": 2}]), [(0.1, 0.9), (0.5, 0.7)])
    [axis] = [panel.x for panel in draw(seen.url, "results", by="x").panels]
    assert [name[:5] for _, name in axis.marks] == ["2", "10000"]


def test_failed_run_is_not_the_best_whatever_it_logged(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("wild", [{"lr": 1}, {"lr": 2}, {"lr": 3}])
    for index, (state, value) in enumerate([("diverged", 0.99), ("failed", 0.98), ("done", 0.5)]):
        seen.claim(job, index)
        seen.end(job, index, state, seen.curve(job, index, [Point(0, 0.0, {"accuracy": value})]))
    assert [run.row.index for run in source(seen.store, "wild").ranked] == [2]
    assert len(marks(draw(seen.url, "results", "wild", by="lr"), Points)[0].x) == 3  # a point all the same


def test_best_values_are_taken_where_asked_for(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("peaks", [{"lr": 1}, {"lr": 2}])
    for index, values in enumerate([(0.9, 0.1), (0.5, 0.5)]):
        seen.claim(job, index)
        points = [Point(step, float(step), {"accuracy": v}) for step, v in enumerate(values)]
        seen.end(job, index, "done", seen.curve(job, index, points))
    assert source(seen.store, "peaks").ranked[0].row.index == 1
    assert source(seen.store, "peaks", best=True).ranked[0].row.index == 0


def test_defaults_and_values_a_script_chose_are_parameters_too(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    defaults.note(seen.store, ("python", "train.py"), {"lr": 0.1, "width": 8})
    job = seen.submit("some", [{"seed": 0}, {"seed": 1, "lr": 0.5}])
    for index in range(2):
        seen.claim(job, index)
        points = seen.curve(job, index, [Point(1, 1.0, {"accuracy": 0.5 + index / 10})])
        seen.end(job, index, "done", points, config={"momentum": 0.9})
    runs = source(seen.store, "some")
    wanted = [{"lr": 0.1, "seed": 0}, {"lr": 0.5, "seed": 1}]
    assert [dict(run.params) for run in runs.runs] == [{**one, "width": 8, "momentum": 0.9} for one in wanted]
    assert runs.varying == ["seed", "lr"]
    chart = draw(seen.url, "results", "some", by="lr")
    assert list(marks(chart, Points)[0].x) == [0.1, 0.5]
    table = json.loads(report(seen.store, "some").split('id="stored">')[1].split("</script>")[0])["data"]
    assert [row[table["columns"].index("lr")] for row in table["rows"]] == [0.1, 0.5]


def test_failed_run_is_neither_best_so_far_nor_cheapest_good(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("luck", [{"lr": n} for n in range(4)])
    for index, (state, value) in enumerate(
        [("done", 0.5), ("failed", 0.9), ("diverged", 0.8), ("done", 0.6)]
    ):
        seen.claim(job, index)
        points = seen.curve(job, index, [Point(1, 1.0, {"accuracy": value})])
        seen.end(job, index, state, points, "no luck" if state == "failed" else "")
    chart = draw(seen.url, "trend", "luck")
    assert list(marks(chart, Polyline)[0].y) == [0.5, 0.6]
    assert chart.note == "left out: 2 failed or diverged runs"
    assert list(marks(draw(seen.url, "cost", "luck"), Polyline)[0].y) == [0.5, 0.6]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_metric_that_is_never_a_number_is_reported_as_such(tmp_path: Path, value: float) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("lost", [{"lr": 1}, {"lr": 2}])
    for index in range(2):
        seen.claim(job, index)
        seen.end(job, index, "done", seen.curve(job, index, [Point(1, 1.0, {"accuracy": value})]))
    said = "accuracy is NaN, infinite or too large in all 2 runs that have logged it"
    for kind in set(KINDS) - {"completion", "grid", "contour"}:
        assert draw(seen.url, kind, "lost").note == said, kind
    assert said in report(seen.store, "lost")
    answer = CliRunner().invoke(cli, ["best", "--store", seen.url, "lost"])
    assert "accuracy is NaN or infinite in all 2 finished runs of lost" in str(answer.exception)


def test_extreme_values_are_gaps_in_every_plot(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("burst", [{"lr": n} for n in range(1, 7)])
    for index in range(6):
        values = [0.5, 1.7e308, -1e308, 0.6 + index if index % 2 else 1e308]
        points = [Point(n, float(n), {"accuracy": value}) for n, value in enumerate(values)]
        seen.claim(job, index)
        seen.end(job, index, "done", seen.curve(job, index, points))
    for kind in KINDS:
        save(draw(seen.url, kind, "burst"), tmp_path / "x.png")
    assert list(marks(draw(seen.url, "best", "burst"), Polyline)[-1].y) == [0.5, None, None, 5.6]


def test_a_range_that_is_none_is_one_line(seen: Seen) -> None:
    answer = CliRunner().invoke(cli, ["plot", "best", "--store", seen.url, "--y-range", "nan,1"])
    assert "--y-range nan,1: expected two numbers" in str(answer.exception)


def test_logarithmic_axis_without_positive_values_says_so(
    seen: Seen, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    job = seen.submit("flat", [{"lr": 1}])
    seen.claim(job, 0)
    seen.end(job, 0, "done", seen.curve(job, 0, [Point(n, float(n), {"accuracy": 0.0}) for n in range(3)]))
    save(draw(seen.url, "best", "flat", log_y=True), tmp_path / "x.svg")
    assert "no value above 0" in (tmp_path / "x.svg").read_text() and not recwarn.list


def test_unknown_words_are_answered_with_the_nearest(seen: Seen, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'lr'"):
        draw(seen.url, "results", "cifar-grid", by="lrr")
    with pytest.raises(MissingError, match="no run has logged 'acuracy'"):
        draw(seen.url, "best", "cifar-grid", metric="acuracy")
    with pytest.raises(MissingError, match="no run has logged 'tme'"):
        draw(seen.url, "grid", "cifar-grid", x="tme")
    with pytest.raises(UsageError, match="did you mean"):
        draw(seen.url, "paralel", "cifar-grid")
    with pytest.raises(UsageError, match=r"\.png"):
        save(draw(seen.url, "best", "cifar-grid"), tmp_path / "plot.gif")


def test_plotly_knows_every_part_of_every_figure(seen: Seen) -> None:
    objects = servers.library("plotly.graph_objects")
    for kind in KINDS:
        for sweep in ("cifar-grid", "odd-values", "empty"):
            made = figure(draw(seen.url, kind, sweep))
            objects.Figure(made)  # raises for what it does not know
            json.dumps(made, allow_nan=False)


def test_importance_is_judged_by_whole_runs_alone(tmp_path: Path) -> None:
    made = Seen(tmp_path / "store")
    job = made.submit("pruned", [{"lr": n % 3, "seed": n} for n in range(18)])
    for n in range(18):
        value = n % 3 if n < 9 else -99.0
        made.claim(job, n)
        made.end(
            job, n, "done" if n < 9 else "pruned", made.curve(job, n, [Point(1, 0.0, {"accuracy": value})])
        )
    drawn = source(made.store, "pruned")
    assert importances(drawn)["lr"] > 0.9
    assert importance.importance(drawn, Look()).note.endswith("over 9 whole runs")


def test_importance_of_many_runs_averages_each_part_once(monkeypatch: pytest.MonkeyPatch, seen: Seen) -> None:
    made = source(seen.store, "cifar-grid")
    taken: list[int] = []
    real = importance.fmean
    monkeypatch.setattr(importance, "fmean", lambda values: taken.append(len(values)) or real(values))
    shares = importances(made)
    assert shares["lr"] > 0
    assert len(taken) <= sum(2 + len({run.at(key) for run in made.valued}) for key in made.varying)


def test_empty_chart_has_a_whole_title_and_no_axes(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    seen.submit("quiet", [{"a": 1}, {"a": 2}], metric=None)
    chart = draw(seen.url, "trend", "quiet")
    assert chart.title == "The best metric over the search" and chart.note == "no run has logged a metric yet"
    assert not figure(chart)["layout"]["xaxis"]["visible"]


@pytest.mark.parametrize("kind", ["slices", "parallel", "results", "grid"])
def test_long_names_are_cut_to_the_panels_of_a_page(kind: str, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    policies = ("randaugment-magnitude9-increasing", "trivial-augment-wide", "no-augmentation-at-all")
    runs = [
        {"model.backbone.learning_rate": 10.0**-n, "data.augmentation.policy": policy, "seed": seed}
        for n, policy in enumerate(policies)
        for seed in range(2)
    ]
    job = seen.submit("long", runs, metric="eval/word_error_rate", goal="min")
    for index in range(len(runs)):
        values = {"eval/word_error_rate": 0.1 * index}
        seen.claim(job, index)
        seen.end(job, index, "done", seen.curve(job, index, [Point(s, 1.79e9, values) for s in (1, 2)]))
    made = figure(draw(seen.url, kind, "long", **({"column": "seed"} if kind == "grid" else {})))
    for place, pixels in (("layout", 1000), ("narrow", 300), ("paper", 570)):
        for name, axis in made[place].items():
            if not name.startswith("xaxis"):
                continue
            room = (axis["domain"][1] - axis["domain"][0]) * pixels
            assert 7 * len(axis["title"]["text"]) <= room
            if ticks := axis.get("ticktext", ()):
                assert max(map(len, ticks)) * len(ticks) * 7 <= room
