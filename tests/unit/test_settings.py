"""Settings of the environment: plain numbers, and numbers with units."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hostler import settings
from hostler.errors import UsageError
from hostler.settings import IN_BYTES, Sizes
from hostler.spec.units import duration, size


@pytest.mark.parametrize("text", ["5MB", "5 MiB", "0.5gb", "2G", "512KiB", "100b", "1e6", "1000"])
def test_size_with_a_unit_is_read_as_everywhere(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    for name in IN_BYTES:
        monkeypatch.setenv(f"HOSTLER_{name.upper()}", text)
        assert getattr(settings.sizes(), name) == (float(text) if text[-1].isdigit() else size(text))


@pytest.mark.parametrize("text", ["5m", "1h30m", "90s", "250ms", "1d", "1.5 h", "7"])
def test_time_with_a_unit_is_read_as_everywhere(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HOSTLER_GRACE", text)
    assert settings.timing().grace == duration(text if text != "7" else 7)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("GRACE", "5MB"),
        ("OUTPUTS_MAX", "5m5"),
        ("OUTPUTS_MAX", "much"),
        ("SNAPSHOT_FILES", "5k"),
        ("GRACE", "-5m"),
    ],
)
def test_unit_of_another_kind_is_refused_as_before(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"HOSTLER_{name}", text)
    with pytest.raises(UsageError) as error:
        settings.timing(), settings.sizes()
    assert (
        str(error.value) == f"HOSTLER_{name}={text!r} is not a number (for example 10, in seconds or bytes)"
    )


def test_sizes_in_bytes_are_settings() -> None:
    assert set(IN_BYTES) < {field.name for field in fields(Sizes)}
