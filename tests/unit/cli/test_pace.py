from __future__ import annotations

import pytest

from hostler.cli.terminal.pace import SOON, pause


def test_folder_is_looked_at_often_in_the_beginning() -> None:
    assert pause(0.0, 0.3, folder=True) == SOON
    assert pause(1.0, 0.3, folder=True) == pytest.approx(0.1)
    assert pause(60.0, 0.3, folder=True) == 0.3


def test_bucket_is_looked_at_as_rarely_from_the_beginning() -> None:
    assert pause(0.0, 1.0, folder=False) == 1.0
