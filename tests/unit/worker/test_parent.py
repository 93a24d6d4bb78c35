from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hostler
from hostler.backends import registry
from hostler.settings import Timing
from hostler.worker import parent
from hostler.worker.parent import Restarts, argv_of

TIMING = Timing(restart_min=0.5, restart_max=8.0)


def test_the_wait_doubles_up_to_its_bound() -> None:
    restarts, waits = Restarts(), []
    for _ in range(6):
        restarts = restarts.after(alive=1.0)
        waits.append(restarts.wait(TIMING))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]


def test_a_worker_that_lived_long_starts_the_count_again() -> None:
    assert Restarts(5).after(alive=61.0).wait(TIMING) == 0.5


def test_a_thousand_deaths_do_not_overflow() -> None:
    assert Restarts(5000).wait(TIMING) == 8.0


def test_dead_sessions_are_passed_on_only_if_there_are_any() -> None:
    assert argv_of(["w"], "s", [], 5) == ["w", "--session", "s", "--parent-fd", "5"]
    assert argv_of(["w"], "s", ["a", "b"], 5)[-2:] == ["--dead", "a,b"]


def test_the_parent_loads_nothing_of_stores_and_runs() -> None:
    """It lives as long as its worker, and the worker starts when the parent has loaded."""
    script = "import hostler.worker.main, hostler.worker.parent, sys; print(*sys.modules)"
    found = {"PYTHONPATH": str(Path(hostler.__file__).parent.parent)}
    loaded = subprocess.check_output([sys.executable, "-c", script], env=found, text=True).split()
    wanted = (
        "hostler.store",
        "hostler.records",
        "hostler.backends.base",
        "hostler.spec.job",
        "hostler.worker.loop",
    )
    wanted += ("urllib.request", *registry.BACKENDS.values())  # no platform either, before it is named
    assert "hostler.worker.parent" in loaded and not [one for one in loaded if one.startswith(wanted)]


@pytest.mark.parametrize(
    ("queued", "said"),
    [
        (True, ["the job's time is over: it is queued again"]),
        (False, ["the job's time is over: it could not be queued again"]),
        (None, []),
    ],
)
def test_noticed_nodes_are_given_back_after_the_last_has_left(queued: bool | None, said: list[str]) -> None:
    before = {number: signal.getsignal(number) for number in parent.FORWARDED}
    lines: list[str] = []
    try:
        code = parent.keep_nodes(["sleep", "60"], notice_in=0.0, requeue=lambda: queued, say=lines.append)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (code, lines) == (128 + signal.SIGUSR1, said)
