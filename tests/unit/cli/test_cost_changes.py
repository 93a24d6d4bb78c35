"""`hostler cost --explain` on a launch of which it is known what wasted its money."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from hostler.records.launch import launches
from hostler.records.launch.launches import Generation, Stay
from hostler.spec.job import Checkpointing
from seen_world import Seen
from typed_world import Type, typed

__all__ = ["typed"]

RUNS, WORKERS, BOOT, RUN, EVERY = 30, 10, 300.0, 1200.0, 10.0
CHANGE = re.compile(r"  (.+): ([\d.]+) less \((\d+) %\), .+ (sooner|later)")


@pytest.fixture
def launched(typed: Type, tmp_path: Path) -> Seen:
    """Ten machines that boot for five minutes each, and save every ten seconds of an hour of work."""
    fleets = {"burst": {"backend": "local", "workers": WORKERS, "slots": 1, "price": 3.6}}
    given = {"name": "p", "command": "python train.py", "fleets": fleets}
    (tmp_path / "hostler.yaml").write_text(json.dumps(given))
    seen = Seen(tmp_path / ".hostler")
    job = seen.submit("grid", [{"lr": n} for n in range(RUNS)], checkpoint=Checkpointing(every=EVERY))
    worked = RUN * RUNS / WORKERS
    began = time.time() - worked - BOOT
    for index in range(RUNS):
        begins, host = began + BOOT + RUN * (index // WORKERS), f"vm-{index % WORKERS}"
        seen.claim(job, index, session=f"w{index % WORKERS}", host=host, at=begins)
        seen.end(job, index, host=host, at=begins + RUN, started=begins, seconds=RUN, total=RUN)
    one = Generation("burst", 1, "token", WORKERS, 3.6, began, sweeps=("grid",), billed=True)
    assert launches.begin(seen.store, one)
    for n in range(WORKERS):
        stay = Stay(f"w{n}", worked, over=True, final=True, machine=f"vm-{n}", age=worked + BOOT)
        launches.note(seen.store, "burst", 1, stay)
    return seen


def changes(shown: str) -> dict[str, tuple[float, int, str]]:
    """Change → money that it saves, its part of the cost in percent, and whether it is later."""
    _, _, after = shown.partition("burst/1: would have been cheaper, simulated, with\n")
    found = [match for line in after.splitlines() if (match := CHANGE.fullmatch(line))]
    return {match[1]: (float(match[2]), int(match[3]), match[4]) for match in found}


def test_explanation_names_the_three_changes_that_save_most(typed: Type, launched: Seen) -> None:
    shown = typed("cost", "--explain")
    assert shown.code == 0, shown
    found = changes(shown.out)
    image = "an image with its packages (hostler image build)"
    assert list(found) == ["workers: 1", image, "checkpoint: {every: 40s}"], shown.out
    wasted = WORKERS * BOOT * 3.6 / 3600  # by booting
    assert found["workers: 1"][0] == pytest.approx(0.9 * wasted, rel=0.1)
    assert found[image][0] == pytest.approx((1 - 30 / BOOT) * wasted, rel=0.1)
    assert found["checkpoint: {every: 40s}"][1] == 1  # percent: it holds a training up a sixtieth of the time
    assert found["workers: 1"][2] == "later" and found[image][2] == "sooner"
    told = json.loads(typed("cost", "--explain", "--json").out)
    assert [change["words"] for change in told["savings"]["burst/1"]] == list(found)
    parts = told["explained"]["burst/1"]
    assert parts["booting"] == pytest.approx(wasted, rel=0.01)
    assert parts["training"] == pytest.approx(RUNS * RUN * 3.6 / 3600, rel=0.01)
