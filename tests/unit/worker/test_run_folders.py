"""Whose folders a starting worker may remove."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hostler import proctable
from hostler.records.run import handoff
from hostler.worker.run import leftovers, run_folders


@pytest.fixture
def dead() -> tuple[int, str]:
    """Number and start of a process that is gone."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        start = proctable.start_of(process.pid)
    return process.pid, start


def left(cache: Path, session: str, **owner: Any) -> Path:
    folder = run_folders.of_run(cache, session, "r", 1)
    folder.mkdir(parents=True)
    handoff.write(run_folders.note_of(cache, session), owner)
    return folder.parent


def test_only_the_folder_of_a_dead_worker_goes(tmp_path: Path, dead: tuple[int, str]) -> None:
    place = asdict(leftovers.here())
    gone = left(tmp_path, "gone", pid=dead[0], start=dead[1], place=place)
    run_folders.begin(tmp_path, "alive")
    assert run_folders.remove_abandoned(tmp_path) == ["gone"] and not gone.exists()
    assert run_folders.of_session(tmp_path, "alive").is_dir()


def test_what_another_machine_left_on_a_shared_disk_stays(tmp_path: Path, dead: tuple[int, str]) -> None:
    here = leftovers.here()
    for n, place in enumerate([replace(here, host="other"), replace(here, namespace="other")]):
        folder = left(tmp_path, f"s{n}", pid=dead[0], start=dead[1], place=asdict(place))
        assert run_folders.remove_abandoned(tmp_path) == []
        assert folder.is_dir()


def test_what_this_machine_left_before_its_last_boot_goes(tmp_path: Path) -> None:
    me = proctable.row(1)
    place = asdict(replace(leftovers.here(), boot="before"))
    left(tmp_path, "s", pid=1, start=me.start if me else "", place=place)
    assert run_folders.remove_abandoned(tmp_path) == ["s"]
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize("owner", [{}, {"place": {"host": "h"}, "pid": 1, "start": ""}])
def test_a_note_of_another_version_is_not_judged(tmp_path: Path, owner: dict[str, Any]) -> None:
    left(tmp_path, "s", **owner)
    assert run_folders.remove_abandoned(tmp_path) == []


def test_what_runs_print_is_their_owners_alone(tmp_path: Path) -> None:
    run_folders.begin(tmp_path, "me")
    assert run_folders.of_session(tmp_path, "me").stat().st_mode & 0o077 == 0


def test_a_worker_that_leaves_takes_its_folder_along(tmp_path: Path) -> None:
    run_folders.begin(tmp_path, "s")
    run_folders.end(tmp_path, "s")
    assert list((tmp_path / "runs").iterdir()) == []
