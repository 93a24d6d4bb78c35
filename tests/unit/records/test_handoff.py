"""The folder between a worker and a run's process: whole files or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff


def test_a_run_finds_its_folders_and_parameters(tmp_path: Path) -> None:
    place = Handoff(tmp_path / "run")
    place.make({"lr": 0.1, "path": Path("x")})
    assert place.checkpoint.is_dir()
    assert place.output.is_dir()
    assert handoff.read(place.params) == {"lr": 0.1, "path": "x"}
    place.make({"lr": 0.2})
    assert handoff.read(place.params) == {"lr": 0.2}


def test_a_stop_request_has_its_reason_and_leaves_nothing_else(tmp_path: Path) -> None:
    place = Handoff(tmp_path)
    assert handoff.read(place.stop) is None
    place.request_stop("preempted")
    assert handoff.read(place.stop) == {"reason": "preempted"}
    assert [path.name for path in tmp_path.iterdir()] == ["stop.json"]


def test_what_is_half_or_not_an_object_is_not_there(tmp_path: Path) -> None:
    for text in ("", '{"a"', "[1]", "7"):
        (tmp_path / "x").write_text(text)
        assert handoff.read(tmp_path / "x") is None


def test_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "note.json" / "in the way").mkdir(parents=True)
    with pytest.raises(OSError):
        handoff.write(tmp_path / "note.json", {"pid": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["note.json"]
