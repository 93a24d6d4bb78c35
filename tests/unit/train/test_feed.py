"""Loader processes where they cannot work."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from hostler.errors import MachineError
from hostler.train.data.feed import check_sockets


def test_a_temporary_folder_too_long_for_sockets_is_said_where_loaders_would_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 20)))
    with pytest.raises(MachineError, match="too long for loader processes"):
        check_sockets(2)
    check_sockets(0)


def test_a_short_one_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    check_sockets(2)
