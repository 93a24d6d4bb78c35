from __future__ import annotations

from pathlib import Path

from hostler.fleet import secrets
from hostler.fleet.machines import shape_of
from hostler.spec.project import Fleet

VALUES = {"B": "two", "A": "one"}


def test_equal_secrets_have_equal_marks_that_hide_them(tmp_path: Path) -> None:
    marks = secrets.marks(VALUES, tmp_path)
    assert marks == secrets.marks(dict(reversed(VALUES.items())), tmp_path)
    assert [mark.partition("=")[0] for mark in marks] == ["A", "B"] and "two" not in "".join(marks)
    [key] = tmp_path.iterdir()
    assert not key.stat().st_mode & 0o077


def test_a_secret_that_was_changed_takes_machines_of_its_own(tmp_path: Path) -> None:
    fleet = Fleet("burst", "gce")
    shapes = {
        shape_of(fleet, "gs://b/p", (), secrets.marks({**VALUES, "A": value}, tmp_path))
        for value in ("one", "one", "another")
    }
    assert len(shapes) == 2


def test_who_has_another_key_can_compare_nothing(tmp_path: Path) -> None:
    assert secrets.marks(VALUES, tmp_path / "x") != secrets.marks(VALUES, tmp_path / "y")


def test_without_secrets_there_is_no_key(tmp_path: Path) -> None:
    assert secrets.marks({}, tmp_path) == [] and not list(tmp_path.iterdir())
