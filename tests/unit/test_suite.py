"""The suite's runner: which failures are tried again, and what that decides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import known_python
import suite
from dealing import dealt

SUITE = Path(__file__).parent.parent / "suite.py"

UNSTEADY = """
from pathlib import Path
def test_first_time_fails():
    been = Path(__file__).with_name("been")
    seen = been.exists()
    been.touch()
    assert seen
def test_steady(): pass
"""


def run_suite(folder: Path, source: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_these.py").write_text(source)
    command = [sys.executable, str(SUITE), "-p", "xdist", "-p", "no:cacheprovider", "-n", "2", "-q", "."]
    # What others plug into pytest takes a second to load.
    given = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=120)


def test_test_that_passes_alone_is_named_unsteady(tmp_path: Path) -> None:
    ran = run_suite(tmp_path, UNSTEADY)
    assert ran.returncode == 0, ran.stdout
    assert (
        "1 failed, 1 passed" in ran.stdout and "unsteady: test_these.py::test_first_time_fails" in ran.stdout
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def test_x(): assert 0", "now one by one"),
        ("import nosuchmodule", "nosuchmodule"),
        (UNSTEADY + "\ndef test_broken(): assert 0", "unsteady: test_these.py::test_first_time_fails"),
    ],
    ids=["fails twice", "not importable", "one of two"],
)
def test_test_that_fails_alone_fails_the_suite(tmp_path: Path, source: str, says: str) -> None:
    ran = run_suite(tmp_path, source)
    assert ran.returncode != 0 and says in ran.stdout, ran.stdout + ran.stderr


def test_many_failures_are_not_tried_again(tmp_path: Path) -> None:
    many = f"@pytest.mark.parametrize('n', range({suite.AGAIN + 1}))"
    ran = run_suite(tmp_path, f"import pytest\n{many}\ndef test_x(n): assert 0")
    assert ran.returncode == 1 and "one by one" not in ran.stdout


@pytest.mark.parametrize(("cores", "count"), [(0, 3), (1, 3), (2, 6), (96, 12)])
def test_three_tests_run_at_a_time_on_each_core(cores: int, count: int) -> None:
    assert suite.at_once(cores) == count


def test_each_worker_gets_slow_files_first_then_quick_ones() -> None:
    files = ["tests/faults/a"] * 3 + ["tests/unit/b"] * 5 + ["tests/walks/c"] * 2 + ["tests/unit/d"] * 2
    order = dealt(files, 2)
    assert sorted(order) == list(range(len(files)))
    one, other = ([files[place][-1] for place in half] for half in (order[:6], order[6:]))
    assert (one, other) == (list("aaabdd"), list("ccbbbb"))


def test_last_of_many_workers_begins_with_quick_files_alone() -> None:
    files = ["tests/faults/a"] * 2 + ["tests/unit/b"] * 3 + ["tests/walks/c"] * 2 + ["tests/unit/d"] * 2
    order = dealt(files, 3)
    assert [[files[place][-1] for place in order[n : n + 3]] for n in (0, 3, 6)] == [
        list("aad"),
        list("ccd"),
        list("bbb"),
    ]


@pytest.mark.parametrize("workers", [1, 2, 5, 40])
def test_dealing_loses_and_repeats_no_test(workers: int) -> None:
    files = [f"tests/{('walks', 'unit')[n % 3 > 0]}/test_{n % 7}.py" for n in range(31)]
    order = dealt(files, workers)
    assert sorted(order) == list(range(31))


def test_workers_share_the_bytecode_of_tests_even_where_python_writes_none(tmp_path: Path) -> None:
    source = "import sys\ndef test_it(): assert not sys.dont_write_bytecode"
    ran = run_suite(tmp_path, source, PYTHONDONTWRITEBYTECODE="1")
    assert ran.returncode == 0, ran.stdout


def test_shims_on_the_path_give_way_to_this_python() -> None:
    own = str(Path(sys.base_prefix, "bin"))
    assert known_python.without_shims("/a:/home/me/.pyenv/shims:/b") == f"/a:{own}:/b"
    assert known_python.without_shims(f"{own}:/root/.pyenv/shims") == own
    assert known_python.without_shims("/usr/bin:/bin") == "/usr/bin:/bin"
