from __future__ import annotations

import pytest

from hostler import env
from hostler.errors import UsageError


@pytest.mark.parametrize("switch", [(env.TOGETHER, env.together), (env.WARM, env.warm)])
def test_a_switch_is_on_off_or_an_error(switch: tuple, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[type-arg]
    name, asked = switch
    for word, on in {"": True, "1": True, "Yes": True, "0": False, "off": False, "FALSE": False}.items():
        monkeypatch.setenv(name, word)
        assert asked() is on
    monkeypatch.setenv(name, "x")
    with pytest.raises(UsageError, match=f"{name}=x is neither on nor off"):
        asked()
