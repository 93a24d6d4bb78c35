"""Every verb that reads a store first delivers what a script by hand, killed on this machine, left for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import servers
from dead_world import POINTS, Scene
from hostler import env
from hostler.cli.assistants import answers
from hostler.cli.overview import VERBS
from hostler.cli.terminal import liveness
from seen_world import Seen
from typed_world import Type, typed

__all__ = ["typed"]

SWEEP = "sweep.yaml"
# verb → words that make it read; `train` is the killed script's run, `grid/0` one that is done.
READING = {
    "attach": ["train"],
    "best": ["--metric", "loss", "--goal", "min", "train"],
    "cost": [],
    "df": [],
    "diff": ["train", "grid/0"],
    "errors": [],
    "export": ["train", "--to", "tensorboard"],
    "logs": ["train"],
    "metrics": ["grid", "--pattern", r"loss (?P<loss>\d+)"],
    "plot": ["completion", "train", "-o", "plot.html"],
    "report": ["train", "--metric", "loss", "--goal", "min"],
    "show": ["train"],
    "status": [],
    "wait": ["train"],
    "archive": ["--top", "3", "-y"],
    "gc": ["-n"],
    "pack": ["train"],
    "pull": ["train"],
    "push": ["train", "pushed", "-y"],
    "parallel": ["grid", "2"],
    "pause": ["train"],
    "resume": ["train"],
    "retry": ["train"],
    "rm": ["train", "-y"],
    "stop": ["train"],
    "tag": ["train", "+x"],
    "doctor": [],
    "plan": [SWEEP],
    "run": ["--dry-run", "train.py"],
    "scout": [SWEEP, "--on", "local"],  # nobody agrees to it
    "simulate": [SWEEP],
    "sweep": ["--dry-run", SWEEP],
    "up": [],
}
SHOWN = {  # what only somebody who reads after the delivery can say
    "attach": "→ python train.py",
    "df": ",19,",
    "diff": "0.05",
    "pull": "train/checkpoint: 3 files\ntrain/outputs: 1 file",
    "push": "train at step 7",
    "show": "table.csv",
    "status": "0.05",
    "up": "nothing waits",
    "wait": "train  lost",
}
SERVING = {"mcp", "ui", "worker"}  # the latter two are in faults/test_last_moments.py
NOT_READING = {
    "completion": "prints a script",
    "demo": "has a store of its own",
    "down": "ends workers, and asks their machines for them",
    "drill": "has a store of its own",
    "image": "asks a cloud for images",
    "import": "reads another tool's file",
    "init": "writes files",
    "notebook": "opens a machine",
    "prices": "reads a table of this machine",
    "ssh": "opens a machine",
    "sync": "copies files",
    "train": "is a script by hand",
}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Type) -> Scene:
    monkeypatch.setenv(env.CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(liveness, "QUIET", 0.0)
    (tmp_path / "train.py").write_text("")
    (tmp_path / SWEEP).write_text("command: python train.py\nparameters: {lr: [0.1, 0.2]}\n")
    seen = Seen(tmp_path / ".hostler")
    job = seen.submit("grid", [{"lr": 0.1}])
    seen.claim(job, 0)
    seen.log(job, 0, "loss 3\n")
    seen.end(job, 0, points=POINTS[:3])
    return Scene(seen.store)


def test_each_verb_delivers_serves_or_reads_no_store() -> None:
    assert sorted([*READING, *SERVING, *NOT_READING]) == sorted(VERBS)


@pytest.mark.parametrize("verb", READING)
def test_verb_first_delivers_what_a_dead_script_left(scene: Scene, typed: Type, verb: str) -> None:
    answer = typed(verb, *READING[verb])
    assert SHOWN.get(verb, "") in answer.out + answer.err, answer
    assert scene.steps() == scene.fragments() == list(range(20)), answer
    assert not scene.is_there and scene.kinds[:2] == ["claim", "release"], answer


@pytest.mark.parametrize("tool", ["read_metrics", "list_files"])
def test_assistant_reads_what_a_dead_script_left(scene: Scene, tmp_path: Path, tool: str) -> None:
    anyio, _ = servers.library("anyio"), servers.library("mcp")
    from hostler.cli.assistants.server import Desk

    desk = Desk(tmp_path, scene.store.url)
    given = answers.unmarked(anyio.run(desk.answer, tool, {"run": "train"}))
    assert ("table.csv" if tool == "list_files" else "0.05") in str(given)
    assert scene.steps() == list(range(20)) and not scene.is_there
