"""Verbs without a name, stores that are not there, and hints that lead somewhere."""

from __future__ import annotations

import json
import os
import time
import webbrowser
from pathlib import Path
from typing import Any

import click
import pytest

import servers
from hostler.fleet import sweep
from hostler.records import layout
from hostler.records.run import resolve
from hostler.records.run.log import RunKey
from hostler.records.series.points import Point
from hostler.records.sweep import deadline, sweeps
from hostler.spec.job import Budget, Job
from hostler.spec.names import is_part, slug, sweep_name
from seen_world import Seen
from typed_world import Type, typed

__all__ = ["typed"]

GOOD = [Point(1, 1.79e9, {"accuracy": 0.5})]


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    return Seen(tmp_path / ".hostler")


def swept(seen: Seen, name: str, state: str = "done", runs: int = 2, **given: Any) -> Job:
    job = seen.submit(name, [{"lr": n} for n in range(runs)], **given)
    for index in range(runs):
        seen.claim(job, index)
        message = "no luck" if state == "failed" else ""
        seen.end(job, index, state, GOOD if state == "done" else (), message)
    return job


def aged(seen: Seen, name: str, seconds: float) -> None:
    """As if the sweep had been submitted so long ago."""
    for path in (seen.folder / layout.specs(name)).iterdir():
        os.utime(path, (time.time() - seconds,) * 2)


def two(seen: Seen, **given: Any) -> None:
    """`alpha` is the newest, whatever the names sort like."""
    swept(seen, "zeta", **given)
    swept(seen, "alpha", **given)
    aged(seen, "zeta", 60)


def saved(seen: Seen, job: Job, index: int) -> None:
    place = seen.folder / layout.output_commit(job.run_id(index), 1)
    place.parent.mkdir(parents=True)
    place.write_text("{}")


def test_best_without_a_name_takes_the_newest_sweep(seen: Seen, typed: Type) -> None:
    two(seen)
    answer = typed("best")
    assert answer.code == 0 and answer.out.startswith("alpha/0  accuracy=0.5")
    assert answer.err.splitlines()[0] == "hostler: the newest sweep is alpha"
    [best] = json.loads(typed("best", "--json").out)
    assert (best["sweep"], best["name"]) == ("alpha", "alpha/0")
    assert "newest" not in typed("best", "zeta").err


def test_report_and_plot_without_a_name_take_the_newest(seen: Seen, typed: Type, tmp_path: Path) -> None:
    servers.library("matplotlib")
    two(seen)
    answer = typed("report")
    assert answer.out.strip() == "alpha.html" and "the newest sweep is alpha" in answer.err
    answer = typed("plot", "completion", "-o", "newest.html")
    assert answer.code == 0 and "the newest sweep is alpha" in answer.err
    assert sweeps_in(tmp_path / "newest.html") == {"alpha"}
    assert "newest" not in typed("plot", "completion", "--all", "-o", "all.html").err
    assert sweeps_in(tmp_path / "all.html") == {"alpha", "zeta"}


def sweeps_in(page: Path) -> set[str]:
    """The sweeps that a page's plot names."""
    return {
        name
        for name in ("alpha", "zeta")
        if f'"{name}"' in page.read_text().partition('id="stored">')[2].partition("<")[0]
    }


def test_logs_and_wait_without_a_name_take_the_newest(seen: Seen, typed: Type) -> None:
    two(seen)
    for name in ("alpha", "zeta"):
        seen.log(sweeps.load(seen.store, name), 0, f"printed by {name}\n")
    answer = typed("logs", "-f")
    assert "printed by alpha" in answer.out and "printed by zeta" not in answer.out
    assert answer.err.splitlines()[0] == "hostler: the newest sweep is alpha"
    answer = typed("wait")
    assert click.unstyle(answer.out).splitlines() == [
        "alpha/0  done  accuracy=0.5  1m",
        "alpha/1  done  accuracy=0.5  1m 01s",
    ]
    assert answer.err == "hostler: the newest sweep is alpha\n"
    assert {row["sweep"] for row in json.loads(typed("wait", "--json").out)} == {"alpha"}
    assert len(typed("wait", "--all").out.splitlines()) == 4


def test_retry_without_a_name_takes_the_newest(seen: Seen, typed: Type) -> None:
    two(seen, state="failed")
    answer = typed("retry", "--same-code", "--no-start")
    assert answer.code == 0 and answer.out.splitlines() == ["alpha/0: queued again", "alpha/1: queued again"]
    assert answer.err == "hostler: the newest sweep is alpha\n"


def test_newest_skips_the_trash_and_counts_the_last_submission(seen: Seen) -> None:
    assert resolve.newest(seen.store) is None
    two(seen)
    sweeps.submit(seen.store, sweeps.load(seen.store, "zeta"), 2)
    assert resolve.newest(seen.store) == "zeta", "it was submitted again"
    for run in sweeps.run_ids(sweeps.load(seen.store, "zeta")):
        sweeps.put_in_trash(seen.store, "zeta", run)
    assert resolve.newest(seen.store) == "alpha"
    seen.submit("single", [{}], method="")
    assert resolve.newest(seen.store) == "single"
    assert resolve.newest(seen.store, swept=True) == "alpha"


def test_report_of_single_runs_takes_the_newest_of_them(seen: Seen, typed: Type) -> None:
    servers.library("matplotlib")
    swept(seen, "single", runs=1, method="")
    assert typed("report").err == "hostler: the newest sweep is single\n"


def test_newest_of_an_empty_store_says_how_to_begin(typed: Type) -> None:
    for verb in ("best", "report"):
        answer = typed(verb)
        assert answer.code == 1 and answer.err.startswith("hostler: no sweeps yet in ")
        assert answer.err.endswith("  → hostler sweep sweep.yaml starts one\n")
    assert "no runs yet in" in typed("logs").err


READING = [
    ("status",),
    ("show", "x"),
    ("logs", "x"),
    ("attach", "x"),
    ("wait",),
    ("errors",),
    ("best",),
    ("diff", "x", "y"),
    ("cost",),
    ("report",),
    ("plot", "best"),
    ("df",),
    ("ui", "--no-browser"),
    ("metrics", "x"),
    ("export", "x", "--to", "tensorboard"),
    ("stop", "x"),
    ("pause", "x"),
    ("resume", "x"),
    ("retry", "x"),
    ("tag", "x"),
    ("rm", "x"),
    ("parallel", "x", "2"),
    ("pull", "x"),
    ("archive",),
    ("gc",),
]


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_named_store_that_is_not_there_is_an_error(
    words: tuple[str, ...], typed: Type, tmp_path: Path
) -> None:
    place = tmp_path / "nope"
    answer = typed(*words, "--store", str(place))
    assert answer.code == 1 and answer.out == ""
    assert answer.err == (
        f"hostler: {place} is not a hostler store\n  → check --store; without it, the project's is used\n"
    )
    assert not place.exists()


def test_status_of_a_project_without_runs_is_not_an_error(typed: Type) -> None:
    answer = typed("status")
    assert answer.code == 0 and "no runs yet" in answer.err


def test_best_names_pull_only_where_there_are_files(seen: Seen, typed: Type) -> None:
    job = swept(seen, "a")
    assert "hostler pull" not in typed("best").err
    assert json.loads(typed("best", "--json").out)[0]["pull"] is None
    saved(seen, job, 0)
    assert typed("best").err.splitlines()[-1] == "  hostler pull a/0"
    assert json.loads(typed("best", "--json").out)[0]["pull"] == ["hostler", "pull", "a/0"]


def test_report_names_pull_only_where_there_are_files(seen: Seen, typed: Type, tmp_path: Path) -> None:
    servers.library("matplotlib")
    job = swept(seen, "a")
    typed("report", "-o", "r.html")
    assert "hostler pull a/" not in (tmp_path / "r.html").read_text()
    saved(seen, job, 0)
    typed("report", "-o", "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "hostler pull a/0" in text and "hostler pull a/1" not in text


def test_best_of_failed_runs_says_that_all_failed(seen: Seen, typed: Type, tmp_path: Path) -> None:
    swept(seen, "four", "failed", runs=4)
    answer = typed("best", "four")
    assert answer.code == 1
    assert answer.err == "hostler: all 4 runs of four failed\n  → hostler errors four\n"
    servers.library("matplotlib")
    typed("report", "four", "-o", "r.html")
    assert "No best run: all 4 runs of four failed." in (tmp_path / "r.html").read_text()


def test_best_of_open_runs_counts_them(seen: Seen, typed: Type) -> None:
    job = seen.submit("open", [{}, {"lr": 1}])
    seen.claim(job, 0)
    seen.end(job, 0, "failed", (), "no luck")
    assert typed("best").err.splitlines()[1:] == [
        "hostler: no run of open has finished yet (1 queued, 1 failed)",
        "  → hostler status open",
    ]


def paused_by_hours(seen: Seen, hours: float = 2, used: float = 2.5) -> Job:
    """A run that was set aside when the hours were used up, and one that waits."""
    job = seen.submit("s", [{}, {"lr": 1}], budget=Budget(hours=hours), file="sweep.yaml", title="s")
    seen.claim(job, 0)
    entry = {"kind": "release", "attempt": 1, "why": "cap", "then": "paused"}
    seen.entry(job, 0, 2, entry)
    deadline.begin(seen.store, "s")
    began = time.time() - used * 3600
    os.utime(seen.folder / layout.began("s"), (began, began))
    assert deadline.halt_if_over(seen.store, job)
    return job


def test_used_up_hours_say_since_when_and_what_to_allow(seen: Seen, typed: Type) -> None:
    job = paused_by_hours(seen)
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() - 2.5 * 3600))
    hint = f"2h 30m used since {since}; set hours: 4.6 in sweep.yaml, then hostler resume s"
    status = typed("status", "s")
    assert "halted: its budget of 2h is used up" in status.out
    assert f"  → {hint}" in status.err.splitlines()
    assert sum("hostler resume" in line for line in status.err.splitlines()) == 1
    assert "paused: budget" in status.out
    waited = typed("wait", "s")
    assert waited.code == 1 and f"s is halted (its budget of 2h is used up); {hint}" in waited.err
    assert "goes on with them" not in waited.err
    assert hint in typed("show", "s/0").out and "hostler resume s/0" not in typed("show", "s/0").out
    for verb in ("resume", "retry"):
        answer = typed(verb, "s", "--no-start")
        assert answer.code == 2
        assert answer.err == f"hostler: s: its budget of 2h is used up\n  → {hint}\n"
    assert sweeps.load(seen.store, "s").budget == job.budget


def test_resume_takes_the_hours_of_the_repaired_file(seen: Seen, typed: Type, tmp_path: Path) -> None:
    job = paused_by_hours(seen)
    file = tmp_path / "sweep.yaml"
    file.write_text("name: s\ncommand: python t.py\nbudget: {hours: 5}\nparameters: {lr: [0, 1]}\n")
    answer = typed("resume", "s", "--no-start")
    assert answer.code == 0 and "s/0: queued again" in answer.out, answer.err
    assert sweeps.load(seen.store, "s").budget.hours == 5
    assert sweeps.halted(seen.store, "s") is None
    assert RunKey("s", job.run_id(0)).index == 0


@pytest.mark.parametrize(
    ("hours", "used", "allowed"), [(2, 2.51, 4.6), (2, 26.3, 29), (0.0015, 0.002, 0.0035), (10, 90, 100)]
)
def test_proposed_hours_allow_as_many_again(hours: float, used: float, allowed: float) -> None:
    assert deadline.raised(hours, used) == allowed >= hours + used - 1e-9


FILE = """\
name: s
command: python train.py {extra}
style: {style}
parameters: {{lr: [0.1, 0.2], name: ["a b"]}}
"""


def planned(tmp_path: Path, typed: Type, extra: str = "", style: str = "flags", more: str = "") -> str:
    (tmp_path / "s.yaml").write_text(FILE.format(extra=extra, style=style) + more)
    answer = typed("plan", "s.yaml")
    assert answer.code == 0, answer.err
    return next(line for line in answer.out.splitlines() if line.startswith("  run 0: "))


def test_plan_prints_the_command_line_of_run_0(tmp_path: Path, typed: Type) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    assert planned(tmp_path, typed) == "  run 0: python train.py --lr 0.1 --name 'a b'"
    assert planned(tmp_path, typed, style="equals") == "  run 0: python train.py lr=0.1 'name=a b'"
    assert (
        planned(tmp_path, typed, style="env")
        == "  run 0: LR=0.1 NAME='a b' lr=0.1 name='a b' python train.py"
    )
    extra = "--out {output_dir}/x --lr={lr} --no {nothing}"
    line = planned(tmp_path, typed, extra, style="none")
    assert line == "  run 0: python train.py --out $HOSTLER_OUTPUT_DIR/x --lr=0.1 --no '{nothing}'"
    assert json.loads(typed("plan", "s.yaml", "--json").out)["command"] == line.removeprefix("  run 0: ")
    assert not (tmp_path / ".hostler").exists()


def test_plan_says_that_the_script_is_missing(tmp_path: Path, typed: Type) -> None:
    assert planned(tmp_path, typed).startswith("  run 0: python train.py")
    answer = typed("plan", "s.yaml")
    assert answer.err == (
        f"hostler: command: train.py does not exist in {tmp_path}\n"
        "  → create it, or name another under `command:`\n"
    )
    assert "train.py does not exist" in json.loads(typed("plan", "s.yaml", "--json").out)["missing"]
    (tmp_path / "train.py").write_text("print(1)\n")
    assert json.loads(typed("plan", "s.yaml", "--json").out)["missing"] is None


@pytest.mark.parametrize(
    ("words", "file"), [(["plot", "best", "s"], "best.png"), (["report", "s"], "s.html")]
)
def test_show_opens_the_file_in_the_browser(
    words: list[str], file: str, seen: Seen, typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.library("matplotlib")
    swept(seen, "s")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{tmp_path}/opened"\n')
    browser.chmod(0o755)
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # as in a new process: the variable is read once
    monkeypatch.setattr(webbrowser, "_browsers", {})
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    answer = typed(*words, "--show")
    assert answer.code == 0 and "browser" not in answer.err
    assert (tmp_path / "opened").read_text().strip() == (tmp_path / file).as_uri()


def test_capitals_stay_in_the_name_of_a_sweep(tmp_path: Path, typed: Type) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "s.yaml").write_text(
        "name: test_clouDL\ncommand: python train.py\nparameters: {lr: [1, 2]}\n"
    )
    answer = typed("sweep", "-y", "--no-start", "s.yaml")
    assert answer.code == 0 and answer.err.splitlines()[0] == "test_clouDL: 2 runs (grid)"
    assert [row["name"] for row in json.loads(typed("status", "--json").out)] == [
        "test_clouDL/0",
        "test_clouDL/1",
    ]
    assert typed("show", "test_clouDL/1").code == 0
    assert "nothing is new" in typed("plan", "s.yaml").out


def test_sweep_of_an_older_store_keeps_its_name(
    tmp_path: Path, typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "s.yaml").write_text(
        "name: test_clouDL\ncommand: python train.py\nparameters: {lr: [1, 2]}\n"
    )
    with monkeypatch.context() as before:
        before.setattr(sweep, "sweep_name", slug)
        typed("sweep", "-y", "--no-start", "s.yaml")
    (tmp_path / "s.yaml").write_text(
        "name: test_clouDL\ncommand: python train.py\nparameters: {lr: [1, 2, 3]}\n"
    )
    assert typed("sweep", "-y", "--no-start", "s.yaml").code == 0
    names = [row["name"] for row in json.loads(typed("status", "test_clouDL", "--json").out)]
    assert names == [f"{slug('test_clouDL')}/{n}" for n in range(3)]


@pytest.mark.parametrize("text", ["Grid", "a-B.c_2", "grid"])
def test_plain_words_are_names_of_sweeps(text: str) -> None:
    assert sweep_name(text) == text


@pytest.mark.parametrize("text", ["My sweep", "-Grid", "Größe", "A" * 60, "a/B", "K\N{KELVIN SIGN}"])
def test_other_texts_become_safe_names_of_sweeps(text: str) -> None:
    assert sweep_name(text) == slug(text) and is_part(sweep_name(text))
