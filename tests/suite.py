"""Runs the suite, several tests at a time, then once more, one by one, the few tests that failed.

Several tests at a time on two cores starve each other now and then, and a test that kills things by the
clock can fail of that alone. A test that fails again on an idle machine fails the suite. One that passes is
printed as unsteady, below its first failure: find out whether the product or the test is at fault. More
failures than AGAIN are never the machine's fault, and none of them is tried again.

The first of the two runs is measured: its last line says for how much of the time processors idled, and
names a file with the slowest tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import compiled
import costs

A_CORE = 3  # tests at once: most wait three quarters of their time
MOST = 12  # each of them needs half a gigabyte
AGAIN = 20
TESTS_FAILED = 1  # pytest's exit code; any other is not about tests
LISTING = "--listing"


class Failures:
    """A plugin of pytest's that lists the names of what failed: tests, and files that cannot be imported."""

    def __init__(self, path: str) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            with open(self._path, "a") as names:
                names.write(f"{report.nodeid}\n")

    pytest_collectreport = pytest_runtest_logreport


def run_pytest(words: list[str], measured: Path | None = None) -> tuple[int, list[str]]:
    """Exit code and failures of pytest, in a process of its own; what tests cost goes to a folder."""
    with tempfile.NamedTemporaryFile("r") as failed:
        command = [sys.executable, __file__, LISTING, failed.name, str(measured or "")]
        command += ["-p", "metered", "-m", "not soak", *words]
        code = subprocess.run(command, env=environ()).returncode
        return code, list(dict.fromkeys(failed.read().splitlines()))


def run_listed(failed: str, measured: str, words: list[str]) -> int:
    """Pytest in this process, with plugins that only the process with all reports has."""
    plugins: list[object] = [Failures(failed)]
    if measured:
        plugins.append(costs.Ledger(Path(measured)))
    return pytest.main(words, plugins=plugins)


def environ() -> dict[str, str]:
    """Where Python writes no bytecode, each worker would compile all tests anew, each time."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def at_once(cores: int) -> int:
    """How many tests run at a time on so many cores."""
    return min(MOST, A_CORE * max(1, cores))


def main(words: list[str]) -> int:
    count = at_once(os.cpu_count() or 1)
    costs.put_away(costs.FOLDER)
    with costs.Processors() as processors:
        compiled.compile_tests(words, environ(), os.cpu_count() or 1)
        code, failed = run_pytest(["-n", str(count), "--dist", "worksteal", *words], costs.FOLDER)
    print(costs.tell(costs.FOLDER, processors), flush=True)
    if code != TESTS_FAILED or not 0 < len(failed) <= AGAIN:
        return code
    print(f"\n{len(failed)} failed with others beside them; now one by one:", flush=True)
    code, still = run_pytest(failed)
    if code in (0, TESTS_FAILED):
        for name in failed:
            if name not in still:
                print(f"unsteady: {name}")
    return code


if __name__ == "__main__":
    if sys.argv[1:2] == [LISTING]:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m pytest` does
        sys.exit(run_listed(sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.exit(main(sys.argv[1:] or ["tests"]))
