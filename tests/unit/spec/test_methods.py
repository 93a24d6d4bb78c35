"""Methods of search by name."""

from __future__ import annotations

import pytest

from hostler.errors import MachineError
from hostler.spec import methods


def test_grid_and_random_need_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    methods.check_installed("grid")
    methods.check_installed("random")


@pytest.mark.parametrize("method", methods.LEARNING)
def test_missing_sampler_is_reported_before_anything_starts(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(MachineError, match=f"method {method} needs optuna") as error:
        methods.check_installed(method)
    assert "pip install 'hostler[search]'" in error.value.hint
