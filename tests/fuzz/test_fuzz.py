"""Whatever comes from outside is read, or refused in a line: no crash, no hang, no escape, memory bounded.

HOSTLER_SEED=17 .venv/bin/python -m pytest tests/fuzz/test_fuzz.py -k 'refused and archive'
"""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import fuzz_harness
import fuzzed_answers
import fuzzed_data
import fuzzed_files
import fuzzed_records
import fuzzed_tasks
import pytest
from fuzz_harness import MEMORY, Breach, Target, damaged, fuzz, fuzz_for, keeps_its_promises
from hypothesis import strategies as st
from schedule import repeatable

from hostler.errors import DamagedError

FILES = (fuzzed_files, fuzzed_tasks, fuzzed_data, fuzzed_records, fuzzed_answers)
TARGETS: dict[str, Target] = {one.name: one for module in FILES for one in module.TARGETS}
EXAMPLES = 25  # of each, each time; the long dose takes MINUTES
MINUTES = float(os.environ.get("HOSTLER_FUZZ_MINUTES", "2"))
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_read_or_refused(name: str, tmp_path: Path) -> None:
    fuzz(TARGETS[name], tmp_path, examples=EXAMPLES, number=repeatable())


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_read_or_refused_for_minutes(name: str, tmp_path: Path) -> None:
    first = 1000 * repeatable()
    rounds = fuzz_for(MINUTES * 60, TARGETS[name], tmp_path, number=first)
    print(f"{name}: {rounds} seeds from {first}")


def _hangs(value: Any) -> None:
    while True:
        pass


def _sleeps_long(value: Any) -> None:
    time.sleep(0.01)  # a moment that passes is not a hang: the machine may be busy


def _waits_for_ever(value: Any) -> None:
    threading.Event().wait()


def _waits_for_its_threads(value: Any) -> None:
    over = threading.Event()
    threading.Timer(3.0, over.set).start()  # the test itself must end
    with ThreadPoolExecutor(1) as pool:
        pool.submit(over.wait).result()


def _takes_memory(value: Any) -> None:
    bytearray(2 * MEMORY)


def _crashes(value: Any) -> None:
    raise KeyError(value)


def _says_two_lines(value: Any) -> None:
    raise DamagedError("one\ntwo")


def _writes_outside(folder: Path) -> None:
    (folder.parent / "outside").write_text("x")


def _makes_a_folder_outside(folder: Path) -> None:
    (folder / ".." / "outside").mkdir()


def _moves_a_file_out(folder: Path) -> None:
    (folder / "file").touch()
    (folder / "file").rename(folder.parent / "outside")


def _writes_through_a_link(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "link").write_text("x")


def _writes_below_a_linked_folder(folder: Path) -> None:
    (folder / "out").symlink_to(folder.parent)
    (folder / "out" / "outside").write_text("x")


def _writes_where_it_works(folder: Path) -> None:
    Path("outside").write_text("x")


def _writes_outside_and_swallows_it(folder: Path) -> None:
    try:
        (folder.parent / "outside").mkdir()
    except Exception as error:
        raise DamagedError("no") from error


def _writes_above_an_open_folder(folder: Path) -> None:
    inside = os.open(folder, os.O_RDONLY)
    try:
        os.close(os.open("../outside", os.O_WRONLY | os.O_CREAT, dir_fd=inside))
    finally:
        os.close(inside)


def _writes_inside(folder: Path) -> None:
    inside = os.open(folder, os.O_RDONLY)
    os.close(os.open("by-folder", os.O_WRONLY | os.O_CREAT, dir_fd=inside))
    os.mkdir("deep", dir_fd=inside)
    os.close(inside)
    (folder / "deep" / "file").write_text("x")
    (folder / "deep" / "file").rename(folder / "file")
    (folder / "deep").rmdir()
    open(os.devnull, "w").close()


def _refuses(value: Any) -> None:
    raise DamagedError("no")


def _fuzzed(read: Any, folder: Path) -> None:
    target = Target("planted", "", lambda: st.just(b"x"), lambda value, folder: read(value))
    fuzz(target, folder, examples=2, number=0, shrinks=False)


@pytest.mark.parametrize("read", [_hangs, _takes_memory, _says_two_lines])
def test_reader_that_breaks_a_promise_is_seen(
    read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_harness, "SECONDS", 0.2)
    with pytest.raises(Breach):
        _fuzzed(read, tmp_path)


@pytest.mark.parametrize("read", [_waits_for_ever, _waits_for_its_threads])
def test_reader_that_waits_for_ever_is_seen(
    read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_harness, "WAIT", 0.3)
    with pytest.raises(Breach, match="no answer"):
        _fuzzed(read, tmp_path)


@pytest.mark.parametrize(
    "read",
    [
        _writes_outside,
        _makes_a_folder_outside,
        _moves_a_file_out,
        _writes_through_a_link,
        _writes_below_a_linked_folder,
        _writes_where_it_works,
        _writes_outside_and_swallows_it,
        _writes_above_an_open_folder,
    ],
)
def test_reader_that_writes_outside_its_folder_is_seen(read: Any, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(Breach, match="outside"):
        keeps_its_promises(lambda: read(folder), folder)
    assert not (tmp_path / "outside").exists(), "it was not let out"


def test_reader_may_write_below_its_folder(tmp_path: Path) -> None:
    keeps_its_promises(lambda: _writes_inside(tmp_path), tmp_path)
    assert (tmp_path / "file").read_text() == "x" and (tmp_path / "by-folder").exists()


def test_limit_of_a_test_goes_on_behind_its_readers(tmp_path: Path) -> None:
    before = signal.getitimer(signal.ITIMER_REAL)[0]
    keeps_its_promises(lambda: time.sleep(0.05), tmp_path)
    left = signal.getitimer(signal.ITIMER_REAL)[0]
    assert (left < before - 0.04) if before else left == 0


def test_reader_that_crashes_is_seen(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        _fuzzed(_crashes, tmp_path)


@pytest.mark.parametrize("read", [_refuses, _sleeps_long])
def test_reader_that_keeps_its_promises_passes(read: Any, tmp_path: Path) -> None:
    _fuzzed(read, tmp_path)


@pytest.mark.parametrize("name", ["seal", "chunk"])
def test_reader_that_checks_nothing_is_seen(name: str, tmp_path: Path) -> None:
    """Damage reaches what is packed, not its bytes alone."""
    target = replace(TARGETS[name], read=functools.partial(fuzzed_records.believed, name))
    with pytest.raises(Breach):
        fuzz(target, tmp_path, examples=EXAMPLES, number=1, shrinks=False)


def test_escape_from_an_archives_folder_is_seen(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"
    target.mkdir(parents=True)
    for path in (tmp_path / fuzzed_data.CANARY, tmp_path / "deep" / fuzzed_data.CANARY):
        path.write_text(fuzzed_data.CANARY)
    (tmp_path / "archive").touch()
    fuzzed_data._stayed_inside(tmp_path, target)
    (tmp_path / "deep" / "new").touch()
    with pytest.raises(Breach, match="outside"):
        fuzzed_data._stayed_inside(tmp_path, target)


def test_same_seed_damages_the_same_way(tmp_path: Path) -> None:
    seen: list[list[bytes]] = [[], []]
    for kept in seen:
        target = Target(
            "kept", "", lambda: damaged([b"abcdef" * 4]), lambda value, _, kept=kept: kept.append(value)
        )
        fuzz(target, tmp_path, examples=20, number=7)
    assert seen[0] == seen[1] and len(set(seen[0])) > 10


def test_table_of_the_page_names_every_reader_that_is_fuzzed() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    for target in TARGETS.values():
        assert f"| `{target.name}` | {target.reads} |" in page
