"""Whatever comes from outside is read, or refused in a line: no crash, no hang, no escape, memory bounded.

HOSTLER_SEED=17 .venv/bin/python -m pytest tests/fuzz/test_fuzz.py -k 'refused and archive'
"""

from __future__ import annotations

import functools
import os
import time
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
from fuzz_harness import MEMORY, Breach, Target, damaged, fuzz, fuzz_for
from hypothesis import strategies as st
from schedule import repeatable, seed_of_commit

from hostler.errors import DamagedError

FILES = (fuzzed_files, fuzzed_tasks, fuzzed_data, fuzzed_records, fuzzed_answers)
TARGETS: dict[str, Target] = {one.name: one for module in FILES for one in module.TARGETS}
EXAMPLES = 25  # of each, each time; the long dose takes MINUTES
MINUTES = float(os.environ.get("HOSTLER_FUZZ_MINUTES", "2"))
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_read_or_refused(name: str, tmp_path: Path) -> None:
    fuzz(TARGETS[name], tmp_path, examples=EXAMPLES, number=repeatable(seed_of_commit(ROOT)))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_read_or_refused_for_minutes(name: str, tmp_path: Path) -> None:
    first = 1000 * repeatable(seed_of_commit(ROOT))
    rounds = fuzz_for(MINUTES * 60, TARGETS[name], tmp_path, number=first)
    print(f"{name}: {rounds} seeds from {first}")


def _hangs(value: Any) -> None:
    while True:
        pass


def _sleeps_long(value: Any) -> None:
    time.sleep(0.01)  # time that passes is not a hang: the machine may be busy


def _takes_memory(value: Any) -> None:
    bytearray(2 * MEMORY)


def _crashes(value: Any) -> None:
    raise KeyError(value)


def _says_two_lines(value: Any) -> None:
    raise DamagedError("one\ntwo")


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
