"""A plugin of pytest's (`-p metered`) for processes that run tests: each report tells its processor time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import costs

_counted = 0.0  # processor seconds of this process up to the end of the last phase


def pytest_runtest_logstart() -> None:
    global _counted
    _counted = costs.processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    global _counted
    report = yield
    now = costs.processor_seconds()
    report.user_properties.append((costs.PROCESSORS, now - _counted))  # type: ignore[attr-defined]
    _counted = now
    return report
