"""A sweep in which nothing succeeded makes way for its repaired file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.fleet import again
from hostler.records.rows import rows
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from seen_world import Seen
from typed_world import Type, typed

__all__ = ["typed"]

FILE = """\
name: s
command: python {script}
parameters: {{lr: {values}}}
"""


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "broken.py").write_text("print(\n")
    return Seen(tmp_path / ".hostler")


def written(seen: Seen, script: str = "train.py", values: str = "[1, 2, 3, 4]") -> None:
    (seen.folder.parent / "s.yaml").write_text(FILE.format(script=script, values=values))


def submitted(seen: Seen, typed: Type, *states: str) -> Job:
    """The broken file, and what became of its first runs."""
    written(seen, "broken.py")
    answer = typed("sweep", "-y", "--no-start", "s.yaml")
    assert answer.code == 0, answer.err
    job = sweeps.load(seen.store, "s")
    for index, state in enumerate(states):
        seen.claim(job, index)
        seen.log(job, index, "printed\n")
        if state != "running":
            seen.end(job, index, state, (), "no luck" if state == "failed" else "")
    written(seen)
    return job


def indices(seen: Seen) -> list[int]:
    return [row.index for row in rows(seen.store, ["s"])]


def test_repaired_file_replaces_a_sweep_that_failed_wholly(seen: Seen, typed: Type) -> None:
    submitted(seen, typed, *["failed"] * 4)
    answer = typed("sweep", "--no-start", "s.yaml", given="y\n")
    assert answer.code == 0, answer.err
    assert "all 4 runs failed. Replace them? [y/N] " in answer.err and "Submit?" not in answer.err
    assert indices(seen) == [4, 5, 6, 7] and sweeps.halted(seen.store, "s") is None
    assert sweeps.load(seen.store, "s").command == ("python", "train.py")
    assert typed("rm", "--restore", "s/0").code == 0, "the old one is in the trash"
    assert indices(seen) == [0, 4, 5, 6, 7]


def test_replacement_that_is_refused_leaves_the_sweep(seen: Seen, typed: Type) -> None:
    submitted(seen, typed, *["failed"] * 4)
    answer = typed("sweep", "--no-start", "s.yaml", given="n\n")
    assert answer.code == 1 and "nothing was submitted" in answer.err
    assert indices(seen) == [0, 1, 2, 3] and sweeps.load_version(seen.store, "s")[1] == 1


def test_yes_replaces_failed_runs_and_those_that_never_began(seen: Seen, typed: Type) -> None:
    submitted(seen, typed, "failed")
    shown = typed("plan", "s.yaml")
    assert "1 of 4 runs failed and the others never began: this file replaces them" in shown.out
    assert typed("sweep", "-y", "--no-start", "s.yaml").code == 0
    assert indices(seen) == [4, 5, 6, 7]


@pytest.mark.parametrize("state", ["done", "stopped", "pruned", "running"])
def test_sweep_that_holds_something_is_not_replaced(seen: Seen, typed: Type, state: str) -> None:
    submitted(seen, typed, "failed", state)
    answer = typed("sweep", "-y", "--no-start", "s.yaml")
    assert answer.code == 2 and "would change runs that have started" in answer.err
    refused = typed("sweep", "-o", "-y", "--no-start", "s.yaml")
    assert refused.code == 2 and "-o asks for the sweep's name" in refused.err
    assert indices(seen) == [0, 1, 2, 3] and sweeps.halted(seen.store, "s") is None


@pytest.mark.parametrize("states", [["failed"] * 4, ["failed", "diverged"], []])
def test_overwriting_with_yes_works_where_nothing_is_lost(seen: Seen, typed: Type, states: list[str]) -> None:
    submitted(seen, typed, *states)
    answer = typed("sweep", "-o", "-y", "--no-start", "s.yaml")
    assert answer.code == 0, answer.err
    assert indices(seen) == [4, 5, 6, 7] and sweeps.halted(seen.store, "s") is None


def test_file_with_the_same_runs_is_not_a_replacement(seen: Seen, typed: Type) -> None:
    submitted(seen, typed, *["failed"] * 4)
    written(seen, "broken.py")
    answer = typed("sweep", "-y", "--no-start", "s.yaml")
    assert answer.code == 0 and "-r submits them again" in answer.err
    assert indices(seen) == [0, 1, 2, 3]


def test_replacement_whose_script_is_missing_changes_nothing(seen: Seen, typed: Type) -> None:
    submitted(seen, typed, *["failed"] * 4)
    written(seen, "gone.py")
    answer = typed("sweep", "-y", "--no-start", "s.yaml")
    assert answer.code == 1 and "gone.py" in answer.err
    assert indices(seen) == [0, 1, 2, 3] and sweeps.halted(seen.store, "s") is None


@pytest.mark.parametrize("states", [["failed"] * 4, ["failed"]])
@pytest.mark.parametrize("halted", [False, True])
def test_replacement_cut_off_half_way_is_finished_by_the_next(
    seen: Seen, typed: Type, states: list[str], halted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(seen, typed, *states)
    if halted:
        sweeps.halt(seen.store, "s", "the same error 5 times in a row: no luck")
    with monkeypatch.context() as patched:
        patched.setattr(sweeps, "submit", _killed)
        with pytest.raises(SystemExit):
            typed("sweep", "-y", "--no-start", "s.yaml")
    assert sweeps.halted(seen.store, "s"), "nobody takes what waits"
    assert halted or "  → submit its file again" in typed("status", "s").err.splitlines()
    assert len(rows(seen.store, ["s"], touched=True, trash=True)) == len(states), "nothing is lost"
    answer = typed("sweep", "-y", "--no-start", "s.yaml")
    assert answer.code == 0, answer.err
    assert indices(seen) == [4, 5, 6, 7] and sweeps.halted(seen.store, "s") is None


def _killed(*given: object) -> bool:
    raise SystemExit(9)


def test_run_that_goes_on_again_stops_the_replacement(seen: Seen, typed: Type) -> None:
    submitted(seen, typed, "failed", "done")
    with pytest.raises(Exception, match="runs of s go on again"):
        again.put_away(seen.store, "s", failed=True)
    assert indices(seen) == [0, 1, 2, 3] and sweeps.halted(seen.store, "s") is None
