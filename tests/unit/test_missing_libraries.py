"""A library that tests need: without it they are left out here, and fail where everything has to be there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import servers

TESTS = Path(__file__).parents[1]


def test_missing_library_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert servers.library("json").loads("1") == 1
    with pytest.raises(pytest.skip.Exception, match="no_such_library cannot be imported"):
        servers.library("no_such_library")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no_such_library cannot be imported"):
        servers.library("no_such_library")


def test_later_library_is_loaded_at_its_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_library_of_its_own.py").write_text("said = 1")
    monkeypatch.syspath_prepend(tmp_path)
    found = servers.later("a_library_of_its_own")
    assert "a_library_of_its_own" not in sys.modules
    assert found.said == 1
    del sys.modules["a_library_of_its_own"]


@pytest.mark.parametrize("name", ["no_such_library", "no_such_library.part"])
def test_later_library_that_is_missing_is_so_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"{name} cannot be imported"):
        servers.later(name)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=f"{name} cannot be imported"):
        servers.later(name)


def test_only_pythons_own_module_is_skipped_silently() -> None:
    """`tomllib` came with Python 3.11; for all else there is `servers.library`."""
    words = "importor" + "skip("
    found = [
        line.strip()
        for path in sorted(TESTS.rglob("*.py"))
        for line in path.read_text().splitlines()
        if f"pytest.{words}" in line
    ]
    assert found == [f'tomllib = pytest.{words}"tomllib")  # since Python 3.11']
