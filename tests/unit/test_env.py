from __future__ import annotations

import os

import pytest

from hostler import env
from hostler.errors import UsageError

PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


@pytest.mark.parametrize("switch", [(env.TOGETHER, env.together), (env.WARM, env.warm)])
def test_a_switch_is_on_off_or_an_error(switch: tuple, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[type-arg]
    name, asked = switch
    for word, on in {"": True, "1": True, "Yes": True, "0": False, "off": False, "FALSE": False}.items():
        monkeypatch.setenv(name, word)
        assert asked() is on
    monkeypatch.setenv(name, "x")
    with pytest.raises(UsageError, match=f"{name}=x is neither on nor off"):
        asked()


@pytest.mark.parametrize("before", [None, "logfire"])
def test_plugins_are_off_inside_and_as_before_after(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PLUGINS, raising=False)
    if before:
        monkeypatch.setenv(PLUGINS, before)
    with env.without_plugins():
        assert os.environ[PLUGINS] == "__all__"
    assert os.environ.get(PLUGINS) == before
