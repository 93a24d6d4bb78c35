"""`hostler drill`, whole: right scripts are exact, planted faults are named, nothing is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_world import Answer, World, eventually

# Keeps its own checkpoints and knows nothing of hostler. FAULT: rng, load, save, skip, seed.
PLAIN = """
import json, os, random, sys, time
from pathlib import Path

fault = sys.argv[1]
folder = Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
random.seed(None if fault == "seed" else 0)
weight, start = 0.0, 0
if fault != "load" and (folder / "last.json").exists():
    saved = json.loads((folder / "last.json").read_text())
    weight, start = saved["weight"], saved["step"] + 2 * (fault == "skip")
    version, numbers, gauss = saved["random"]
    if fault != "rng":
        random.setstate((version, tuple(numbers), gauss))
for step in range(start + 1, 41):
    weight += 0.1 * (random.random() - weight)
    time.sleep(0.03)
    print(json.dumps({"step": step, "weight": weight}), flush=True)
    if step % 5 == 0 and fault != "save":
        state = {"weight": weight, "step": step, "random": random.getstate()}
        (folder / "new").write_text(json.dumps(state))
        (folder / "new").replace(folder / "last.json")
"""

LIBRARY = """
import random, sys, time
import hostler

class Weight:
    value = 0.0
    def state_dict(self):
        return {"value": self.value}
    def load_state_dict(self, state):
        self.value = state["value"]

own, weight = random.Random(0), Weight()
with hostler.start() as run:
    run.track(weight=weight)
    if sys.argv[1] != "rng":
        run.track(own=own)
    for step in run.steps(60):
        weight.value += 0.1 * (own.random() - weight.value)
        time.sleep(0.03)
        run.log(step=step, weight=weight.value)
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, "a folder; echo x")
    world.write("plain.py", PLAIN)
    world.write("library.py", LIBRARY)
    yield world
    world.close()


def drill(here: World, *words: str) -> Answer:
    answer = here.run("drill", "--json", "--seed", "1", "--", "python", *words, timeout=200)
    assert answer.code in (0, 1), answer.err
    return answer


def processes(here: World, holding: str = "") -> list[str]:
    """Those of this world, a drill's with their own cache included: known by their TMPDIR."""
    mark, found = f"TMPDIR={here.env['TMPDIR']}\0".encode(), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_text().replace("\0", " ")
            if mark in (path / "environ").read_bytes() and holding in words:
                found.append(words)
        except OSError:
            continue
    return found


def left_behind(here: World) -> list[str]:
    scratch = Path(here.env["TMPDIR"])
    return [str(path) for path in scratch.glob("hostler-drill-*")] + processes(here)


@pytest.mark.parametrize("script", ["plain.py", "library.py"])
def test_a_right_script_is_exact(here: World, script: str) -> None:
    answer = drill(here, script, "none")
    found = answer.json
    assert answer.code == 0, answer.out
    assert found["verdict"] == "exact" and found["exact"]
    assert len(found["kills"]) >= 2 and found["resumed"]
    assert 0 < found["steps"]["undisturbed"] <= found["steps"]["killed"]
    assert not (here.folder / ".hostler").exists()
    assert left_behind(here) == []


def test_unsaved_random_state_of_a_plain_script_is_named(here: World) -> None:
    answer = drill(here, "plain.py", "rng")
    assert answer.code == 1
    [finding] = answer.json["findings"]
    assert finding["text"].startswith("Python's random state (module random) is not restored")
    assert "random.setstate()" in finding["advice"]


def test_untracked_generator_of_a_library_script_is_named(here: World) -> None:
    answer = drill(here, "library.py", "rng")
    assert answer.code == 1
    [finding] = answer.json["findings"]
    assert "random.Random made at library.py:12 is not restored" in finding["text"]
    assert "run.track(" in finding["advice"]


def test_script_that_saves_nothing_is_told_so_with_advice(here: World) -> None:
    answer = here.run("drill", "plain.py", "save", timeout=200)
    assert answer.code == 1
    assert "nothing was saved: every kill starts the script anew" in answer.out
    assert "$HOSTLER_CHECKPOINT_DIR" in answer.out
    assert "Time: " in answer.out and "hostler: killed attempt 1 after " in answer.err


@pytest.mark.soak
def test_a_script_that_loads_nothing_is_told_so(here: World) -> None:
    answer = drill(here, "plain.py", "load")
    assert answer.code == 1 and answer.json["verdict"] == "not-loaded"


@pytest.mark.soak
def test_a_position_that_is_not_saved_is_named(here: World) -> None:
    answer = drill(here, "plain.py", "skip")
    assert answer.code == 1
    assert [finding["kind"] for finding in answer.json["findings"]] == ["skipped"]


@pytest.mark.soak
def test_a_script_that_is_not_seeded_is_told_so(here: World) -> None:
    answer = drill(here, "plain.py", "seed")
    assert answer.code == 1 and answer.json["verdict"] == "not-repeatable"
    assert any("Python's random state" in finding["text"] for finding in answer.json["findings"])


def test_a_script_that_fails_by_itself_is_no_drill(here: World) -> None:
    here.write("broken.py", "raise ValueError('not today')\n")
    answer = here.run("drill", "--", "python", "broken.py")
    assert answer.code == 1
    assert "fails without being killed: ValueError: not today" in answer.err
    assert left_behind(here) == []


def test_nothing_to_drill_is_a_usage_error(here: World) -> None:
    answer = here.run("drill")
    assert answer.code == 2 and "nothing to drill" in answer.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing(here: World, number: int) -> None:
    process = here.start("drill", "--", "python", "plain.py", "none")
    eventually(lambda: bool(processes(here, "spawner.py")), 60)
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode in (130, 143)
    assert left_behind(here) == []
