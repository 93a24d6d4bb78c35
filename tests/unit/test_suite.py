"""The runner of the suite: what is tried again, who runs what, what it costs, and what sleeps."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import compiled
import costs
import known_python
import sleeps
import suite
from dealing import dealt, kin

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


def parts(files: list[str], order: list[int], workers: int) -> list[str]:
    """What each worker begins with: the last signs of its files."""
    share = len(files) // workers
    return ["".join(files[place][-1] for place in order[n * share : (n + 1) * share]) for n in range(workers)]


def test_files_that_share_a_server_go_to_one_worker() -> None:
    files = [f"tests/walks/{name}" for name in "aabbccdd"] + ["tests/unit/u"] * 7
    shared = {"tests/walks/a": "seaweed_url", "tests/walks/d": "seaweed_url", "tests/walks/c": "browser"}
    assert parts(files, dealt(files, 3, shared=shared), 3) == ["aaddu", "bbccu", "uuuuu"]


def test_worker_begins_with_its_longest_tests() -> None:
    files = [f"tests/walks/{name}" for name in "aabcd"] + ["tests/unit/u"] * 8
    order = dealt(files, 3, seconds=[1, 1, 3, 9, 2, *[0.1] * 8])
    assert parts(files, order, 3) == ["cuuu", "bdaa", "uuuu"], "nine seconds, and seven"


@pytest.mark.parametrize(
    ("needs", "found"),
    [
        ([("a", ("tmp_path", "seaweed_url")), ("a", ("tmp_path",)), ("b", ())], {"a": "seaweed_url"}),
        ([("a", ("browser", "moto_url")), ("a", ("moto_url",))], {"a": "moto_url"}),
    ],
)
def test_file_belongs_to_the_server_that_most_tests_need(
    needs: list[tuple[str, tuple[str, ...]]], found: dict[str, str]
) -> None:
    assert kin(needs) == found


def test_collected_tests_are_not_searched_for_garbage() -> None:
    assert gc.isenabled() and gc.get_freeze_count() > 0


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


COSTLY = """
import pytest
@pytest.fixture
def ready(): sum(range(10**7))
def test_costly(ready): sum(range(10**7))
def test_cheap(): pass
"""


def test_slowest_tests_and_idle_time_are_told(tmp_path: Path) -> None:
    ran = run_suite(tmp_path, COSTLY)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    last = ran.stdout.strip().splitlines()[-1]
    assert re.fullmatch(r"Processors idled \d+% of \d+ s; the slowest tests: build/suite/slowest.txt", last)
    told = (tmp_path / "build" / "suite" / "slowest.txt").read_text().splitlines()
    rows = [line.split() for line in told[told.index("") + 2 :]]
    assert [name for *_, name in rows] == ["test_these.py::test_costly", "test_these.py::test_cheap"]
    seconds, setup, processors = map(float, rows[0][:3])
    assert 0 < setup < seconds and processors > 0, "of both halves"
    noted = (tmp_path / "build" / "suite" / "costs.jsonl").read_text().splitlines()
    assert {json.loads(line)["process"] for line in noted} == {"gw0", "gw1"}


def test_costs_are_of_the_first_time_when_others_ran_too(tmp_path: Path) -> None:
    run_suite(tmp_path, UNSTEADY)
    noted = (tmp_path / "build" / "suite" / "costs.jsonl").read_text().splitlines()
    assert len(noted) == 2, "not the one alone that ran again"


def test_seconds_of_the_last_time_are_known_the_next(tmp_path: Path) -> None:
    costs.put_away(tmp_path)
    assert costs.earlier(tmp_path) == {}
    for seconds in (1.0, 2.0):
        costs.write(tmp_path, [costs.Cost("test_a", seconds=seconds), costs.Cost(f"test_{seconds}")])
        costs.put_away(tmp_path)
    assert costs.earlier(tmp_path) == {"test_a": 2.0, "test_1.0": 0.0, "test_2.0": 0.0}
    assert costs.read(tmp_path) == [], "a time that breaks off is not told as the one before"


def test_no_more_than_fifty_of_the_slowest_are_listed(tmp_path: Path) -> None:
    many = [costs.Cost(f"t.py::test_{n}", seconds=n) for n in range(60)]
    costs.write(tmp_path, many)
    costs.tell(tmp_path, costs.Processors())
    rows = (tmp_path / "slowest.txt").read_text().splitlines()
    assert [row.split()[-1] for row in rows[-50:]] == [f"t.py::test_{n}" for n in range(59, 9, -1)]
    assert "test_" not in rows[-51]


def test_idle_time_is_that_of_all_processors_between_looks() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    stat = f"cpu  {3 * ticks} {ticks} {2 * ticks} {7 * ticks} {ticks} {ticks} 0 {ticks} 9 0\ncpu0 1 1 1 1\n"
    assert costs.busy_and_idle(stat) == (8.0, 8.0), "guests are in the first two numbers already"
    looks = [(0.0, 100.0), (10.0, 100.0), (10.0, 110.0), (13.0, 111.0), (13.0, 113.0)]
    assert costs.idle_shares(looks, 1) == [0.5]
    assert costs.idle_shares(looks, 4) == [0.0, 1.0, 0.25, 1.0]
    assert costs.idle_shares(looks[:2], 10) == [0.0] and costs.idle_shares([], 10) == []


def test_no_test_sleeps_where_a_condition_would_do() -> None:
    found = sleeps.sleeping(SUITE.parent)
    new = {place: lines for place, lines in found.items() if place not in sleeps.LISTED}
    assert new == {}, "wait for a condition, or say in tests/sleeps.py why nothing tells it"
    assert sorted(sleeps.LISTED - set(found)) == [], "these sleep no more: take them out of the list"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("time.sleep(2)", 1),
        ("time.sleep(0.02)", 1),
        ("sleep(0.02)", 1),
        ("time.sleep(seconds)", 1),
        ("time.sleep(0)", 0),
        ("while not done():\n        time.sleep(0.1)", 0),
        ("while not done():\n        time.sleep(3)", 1),
        ("while not done():\n        time.sleep(chance())", 1),
        ("while True:\n        if done(): return\n        time.sleep(0.1)", 0),
        ("while True:\n        time.sleep(0.1)", 1),
        ("for n in range(9):\n        time.sleep(0.1)", 1),
        ("for n in range(9):\n        if done(): break\n        time.sleep(0.1)", 0),
        ("while not done():\n        run(lambda: time.sleep(0.1))", 1),
        ("run('time.sleep(9)')", 0),
    ],
)
def test_sleep_that_is_no_pause_of_a_look_is_seen(body: str, count: int) -> None:
    found = list(sleeps.long_sleeps(f"import time\ndef test_it():\n    {body}\n"))
    assert [function for function, *_ in found] == ["test_it"] * count


def test_bytecode_of_tests_is_made_once_before_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "FEW", 2)
    files = [tmp_path / f"test_{name}.py" for name in "ab"]
    for file in files:
        file.write_text("def test_it(): assert 1")
    given = {**suite.environ(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert compiled.stale([str(tmp_path), "-v"]) == files
    assert compiled.compile_tests([str(tmp_path), "-v"], given, cores=1) == 2
    assert compiled.stale([str(tmp_path)]) == []
    later = files[0].stat().st_mtime + 100
    os.utime(files[0], (later, later))
    assert compiled.stale([str(tmp_path)]) == files[:1]
    assert compiled.compile_tests([str(tmp_path)], given, cores=1) == 0, "each worker may as well compile one"


def test_each_core_compiles_about_as_much(tmp_path: Path) -> None:
    files = [tmp_path / f"test_{size}.py" for size in (9, 5, 4, 1)]
    for file, size in zip(files, (9, 5, 4, 1), strict=True):
        file.write_bytes(b"#" * size)
    assert compiled.shares(files, 2) == [[files[0], files[3]], [files[1], files[2]]]
    assert compiled.shares(files[:1], 2) == [files[:1]]
