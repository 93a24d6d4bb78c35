"""Starting scripts warm is switched off for a project by `warm: false`, for a worker by `HOSTLER_WARM=0`.
`warm: strict` keeps it and gives up the short end, for which the parent freezes its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_world import World

SCRIPT = """
import argparse, gc, os
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--place")
parser.add_argument("--seed")
given = parser.parse_args()
words = Path("/proc/self/cmdline").read_bytes().split(b"\\0")
warm = any(word.endswith(b"warm_parent.py") for word in words)
how = "warm" if gc.get_freeze_count() else "strict"
Path(given.place, given.seed).write_text(how if warm else "fresh")
"""


@pytest.mark.parametrize(
    ("line", "variables", "expected"),
    [
        ("warm: true", {}, {"warm", "fresh"}),  # the first is fresh, as there is no parent yet
        ("warm: strict", {}, {"strict", "fresh"}),  # its end takes apart all that was imported
        ("warm: false", {}, {"fresh"}),
        ("warm: true", {"HOSTLER_WARM": "0"}, {"fresh"}),
        ("warm: true", {"HOSTLER_WARM": "off"}, {"fresh"}),
    ],
)
def test_warm_key_and_variable_decide_how_runs_start(
    tmp_path: Path, line: str, variables: dict[str, str], expected: set[str]
) -> None:
    world = World(tmp_path)
    place = tmp_path / "seen"
    place.mkdir()
    world.write("see.py", SCRIPT)
    world.write(
        "hostler.yaml", f"command: python see.py\n{line}\nfleets:\n  here: {{backend: local, workers: 1}}\n"
    )
    world.write(
        "sweep.yaml", f"name: s\nparameters:\n  place: {place}\n  seed: {{start: 0, step: 1, count: 6}}\n"
    )
    world.env.update(variables)

    answer = world.run("sweep", "-y", "--wait", "sweep.yaml")

    assert answer.code == 0, answer.err
    seen = {one.name: one.read_text() for one in place.iterdir()}
    assert len(seen) == 6
    assert set(seen.values()) == expected
