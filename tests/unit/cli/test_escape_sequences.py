"""Escape sequences in every text of a store, over every verb that shows it: on a terminal and in a pipe."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

import servers
from acting_world import World, wait_for, world
from hostler.records import layout
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from pseudo_terminal import on_terminal

__all__ = ["world"]

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[41m\x9b41m\u202e\x7f\x08"
OURS = re.compile(r"\x1b\[(0|1|3[0-7])m|\r(?=\n)")  # bold, colours of letters, a terminal's line ends
OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
VERBS = [
    ["status"],
    ["status", "evil"],
    ["show", "evil/0"],
    ["show", "evil/1"],
    ["logs", "evil"],
    ["logs", "evil", "--grep", "line"],
    ["attach", "evil/0"],
    ["errors", "-v"],
    ["errors", "--all"],
    ["best", "evil"],
    ["diff", "evil/0", "evil/1"],
    ["cost", "--explain"],
    ["metrics", "evil", "--pattern", "nothing (?P<like>this)"],
    ["wait", "evil"],
    ["tag", "evil/0"],
    ["rm", "-y", "evil/2"],
    ["gc", "-n"],
    ["plan", "evil.yaml"],
    ["archive"],
    ["run", "--like", "evil/0", "--dry-run", f"lr={EVIL}"],
    ["logs", f"evil{EVIL}"],
]


@pytest.fixture
def hostile(world: World) -> World:
    """Three ended runs with escape sequences in whatever a person or a script may write."""
    store = world.store
    params = [{f"lr{EVIL}": EVIL, "n": n} for n in range(3)]
    job = Job(
        name="evil",
        command=("python", f"x{EVIL}.py", EVIL),
        runs=tuple(params),
        title=EVIL,
        metric=f"a{EVIL}",
    )
    assert sweeps.submit(store, job)
    for n, state in enumerate(("failed", "done", "done")):
        key = RunKey("evil", job.run_id(n))
        entry = Claim(f"s{n}", facts={"host": f"host{EVIL}"})
        held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, entry)
        assert held is not None
        text = f"line {EVIL}\nbar 1%\rbar 2%\r\n{EVIL}".encode()
        store.put(layout.log_fragment(key.run, held.number, 0, 0), text)
        MetricWriter(store, key.run, held.number).write([Point(1, 0.0, {f"a{EVIL}": 1.0})])
        failure = {
            "kind": f"Error{EVIL}",
            "message": EVIL,
            "traceback": f"File {EVIL}\n  {EVIL}",
            "advice": EVIL,
        }
        more: dict[str, Any] = {"failure": failure, "exit": 1} if state == "failed" else {}
        facts = {f"a{EVIL}": {"last": 1.0, "min": 1.0, "max": 1.0, "step": 1}}
        held.end(state, attempts=1, metrics=facts, **more)
    sweeps.tag(store, "evil", job.run_id(0), [EVIL], [])
    sweep = {"name": "evil", "command": f"python x.py {EVIL}", "parameters": {"lr": [EVIL, 1]}}
    world.write("evil.yaml", json.dumps(sweep))
    world.write("x.py", "")
    return world


def shown(world: World, *words: str) -> str:
    return on_terminal([sys.executable, "-m", "hostler", *words], cwd=world.folder, env=world.env)[1]


def test_no_verb_passes_escape_sequences_on(hostile: World) -> None:
    whole = ""
    for words in VERBS:
        piped = hostile.cli(*words)
        text = piped.stdout + piped.stderr
        assert text.strip() and not re.search("Traceback|edited by hand", text), (words, text)
        assert not OBEYED.search(text), (words, text)
        seen = shown(hostile, *words)
        assert not OBEYED.search(OURS.sub("", seen)), (words, seen)
        whole += seen
    assert "␛[2J" in whole and "\\u202e" in whole and "\x1b[32mdone\x1b[0m" in whole


def test_raw_logs_and_attach_pass_them_on(hostile: World) -> None:
    for words in (["logs", "--raw", "evil/0"], ["attach", "--raw", "evil/0"]):
        assert f"line {EVIL}\n" in hostile.cli(*words).stdout
        assert f"line {EVIL}" in shown(hostile, *words)


def test_json_holds_them_escaped(hostile: World) -> None:
    for words in (["status"], ["show", "evil/0"], ["errors"], ["logs", "evil/0"]):
        piped = hostile.ok(*words, "--json")
        assert not OBEYED.search(piped) and "\\u001b]0;owned" in piped, words


def test_csv_for_programs_holds_values_as_they_are(hostile: World) -> None:
    servers.library("polars")
    assert EVIL in hostile.cli("df").stdout
    assert not OBEYED.search(OURS.sub("", shown(hostile, "df")))


def test_run_shows_own_script_raw_and_others_visible(world: World) -> None:
    world.write("train.py", f"print({EVIL!r}, flush=True)\nimport time; time.sleep(3)\n")
    child = world.spawn("run", "--name", "a", "train.py")
    wait_for(lambda: list(world.store.list(layout.specs("a"))) != [], "a to be submitted")
    world.until("a", "running")
    second = world.cli("run", "--name", "a", "train.py")
    out, _ = child.communicate(timeout=60)
    assert EVIL in out
    assert "under way already" in second.stderr and "␛[2J" in second.stdout
    assert not OBEYED.search(second.stdout)
