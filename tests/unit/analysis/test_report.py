"""The report's text: its size, its sentence of conclusion, what it needs from elsewhere."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hostler.analysis.plots.source import source
from hostler.analysis.report import report
from hostler.analysis.report.conclusion import conclusion
from seen_world import Seen, gallery, learning


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return gallery(tmp_path_factory.mktemp("seen") / "store")


def sentence(found: object, counts: dict[str, int]) -> str:
    return "".join(text for text, _ in conclusion(found, counts))  # type: ignore[arg-type]


def test_report_of_a_hundred_runs_is_under_two_megabytes(tmp_path: Path) -> None:
    made = Seen(tmp_path / "store")
    drawn = random.Random(1)
    grid = [
        {"lr": lr, "model": m, "seed": s, **{f"layers.{n}.dropout": drawn.random() for n in range(9)}}
        for lr in (0.001, 0.01, 0.1, 1.0, 2.0)
        for m in "abcd"
        for s in range(5)
    ]
    job = made.submit("a-hundred-runs-of-twelve-parameters", grid)
    for n, params in enumerate(grid):
        made.claim(job, n)
        made.end(job, n, "done", made.curve(job, n, learning(params, 300)))
    text = report(made.store, job.name)
    assert len(text.encode()) < 2_000_000


def test_report_names_no_other_host(seen: Seen) -> None:
    text = report(seen.store, "cifar-grid")
    page = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"(src|href)=", page) and "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page.replace("&#x27;", "'")


def test_conclusion_names_the_best_its_steps_and_what_failed(seen: Seen) -> None:
    found = source(seen.store, "cifar-grid")
    said = sentence(found, {"done": 30, "running": 2, "failed": 2, "diverged": 2})
    assert said == (
        "lr=0.01, model=resnet50 reaches accuracy 0.9681 after 40 epochs; lr explains 89 %; "
        "2 of 36 failed and 2 diverged."
    )


def test_conclusion_without_a_best_run_says_why(seen: Seen) -> None:
    found = source(seen.store, "cifar-grid")
    none = replace(found, runs=[run for run in found.runs if run.row.state == "failed"])
    assert sentence(none, {"failed": 2}) == "No run has logged accuracy yet; 2 of 2 failed."
    assert sentence(replace(found, runs=[]), {}) == "No run yet."


def test_conclusion_counts_done_runs_where_none_failed(seen: Seen) -> None:
    found = source(seen.store, "cifar-grid")
    assert sentence(found, {"done": 36}).endswith("; all 36 are done.")
    assert sentence(found, {"done": 30, "queued": 6}).endswith("; 30 of 36 are done.")


def test_steps_are_not_called_epochs_where_nothing_counts_these(seen: Seen) -> None:
    found = source(seen.store, "cifar-grid")
    bare = [replace(run, params={k: v for k, v in run.params.items() if k != "epochs"}) for run in found.runs]
    assert "after 40 steps" in sentence(replace(found, runs=bare), {"done": 36})


def test_empty_plots_are_a_line_and_no_blank_card(tmp_path: Path) -> None:
    made = Seen(tmp_path / "store")
    made.submit("waiting", [{"lr": 0.1}, {"lr": 0.2}])
    text = report(made.store, "waiting")
    assert text.count('class="plot"') == 1, "the runs by state"
    assert "no run has logged accuracy yet" in text


def facts(text: str) -> list[str]:
    return re.findall(r"<li><b>([^<]*)</b><span class=muted>(?:a run|of runs in all)</span>", text)


@pytest.mark.parametrize(
    ("seconds", "unit", "shown"), [(7200.0, "hours", ["2h", "4h"]), (40.0, "seconds", ["40s", "1m 20s"])]
)
def test_hours_are_told_as_hours(tmp_path: Path, seconds: float, unit: str, shown: list[str]) -> None:
    made = Seen(tmp_path / "store")
    job = made.submit("long", [{"lr": 0.1}, {"lr": 0.2}])
    for n, params in enumerate(job.runs):
        made.claim(job, n)
        made.end(job, n, "done", made.curve(job, n, learning(params)), seconds=seconds, total=seconds)
    text = report(made.store, "long")
    assert f"accuracy against {unit}" in text
    assert facts(text) == shown
