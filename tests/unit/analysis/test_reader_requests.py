"""Requests that commands make: of one run as many in any sweep, of all runs no more than grow with them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hostler.records import layout
from hostler.records.packs import packer, seals
from hostler.records.packs.packed_store import PackedStore
from hostler.records.rows import rows
from hostler.store.memory import MemoryStore

ROOT = Path(__file__).parents[3]
SEGMENTS = 0.03  # requests for each more run: a hundredth of a segment, and pages of a thousand names
FOLDER = str(ROOT / "benchmarks")


@pytest.fixture(scope="module")
def readers() -> Iterator[ModuleType]:
    sys.path.insert(0, FOLDER)
    import readers

    yield readers
    sys.path.remove(FOLDER)


@pytest.fixture(scope="module", params=[False, True], ids=["own objects", "packed"])
def asked(
    request: pytest.FixtureRequest, readers: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, list[dict[str, int]]]:
    """Whether the sweep is packed, and requests of each command in a small and in a larger one."""
    found = [
        readers.requests(count, tmp_path_factory.mktemp("project"), packed=request.param)
        for count in readers.COUNTED
    ]
    return request.param, found


def test_one_run_costs_the_same_in_a_larger_sweep(
    readers: ModuleType, asked: tuple[bool, list[dict[str, int]]]
) -> None:
    few, many = asked[1]
    assert {words.split()[0] for words in readers.ONE} == {"show", "logs", "pull"}
    assert {words: few[words] for words in readers.ONE} == {words: many[words] for words in readers.ONE}
    assert all(0 < few[words] < 40 for words in readers.ONE)


def test_one_packed_run_reads_no_more_bytes_of_a_larger_sweep(
    readers: ModuleType, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a seal its head and one piece; as packed bytes these differ a little from sweep to sweep."""
    monkeypatch.setattr(seals, "AT_ONCE", 4 << 10)  # so that few runs do for a long seal
    counts = 2 * seals.PIECE + 1, 10 * seals.PIECE + 1
    few, many = (readers.bytes_of_one(count, tmp_path_factory.mktemp("project")) for count in counts)
    assert all(0 < few[words] < 100_000 for words in readers.ONE)
    grown = {words: many[words] - few[words] for words in readers.ONE}
    assert max(grown.values()) < 2_000, grown


def test_all_runs_cost_requests_by_the_hundred(
    readers: ModuleType, asked: tuple[bool, list[dict[str, int]]]
) -> None:
    few, many = asked[1]
    assert {words.split()[0] for words in readers.ALL} == {"status", "best", "df", "plan", "ui"}
    more = readers.COUNTED[1] - readers.COUNTED[0]
    grown = {words: (many[words] - few[words]) / more for words in readers.ALL}
    assert all(0 < each <= SEGMENTS for each in grown.values()), grown


def test_docs_have_the_requests_that_are_counted(
    readers: ModuleType, asked: tuple[bool, list[dict[str, int]]]
) -> None:
    packed, found = asked
    page = (ROOT / "docs" / "scale.md").read_text()
    tables = [part for part in page.split("\n\n") if part.startswith("| command | 1,000 runs | 4,000 runs |")]
    assert tables[packed].strip() == readers.request_table(*found), "python benchmarks/readers.py [--packed]"


def test_quick_packs_hold_what_the_packer_would(readers: ModuleType, tmp_path: Path) -> None:
    """The benchmark's own short cut: what readers see of it is what they see of a packed sweep."""
    import ended_sweep

    logged, quick = MemoryStore(), MemoryStore()
    job = ended_sweep.submit(logged, tmp_path, 100)
    assert ended_sweep.submit(quick, tmp_path, 100) == job
    ended_sweep.end_all(logged, job, packed=False)
    ended_sweep.end_all(quick, job, packed=True)
    assert packer.pack(PackedStore(logged), job, wait=lambda seconds: None).runs == 100
    prefixes = (layout.logs_of(job.name), layout.ends(job.name), layout.run(job.run_id(ended_sweep.RUN)))
    views = PackedStore(logged), PackedStore(quick)
    keys = [[key for prefix in prefixes for key in view.keys(prefix)] for view in views]
    assert keys[0] == keys[1] and len(keys[0]) > 300
    seen = [[(row.id, row.state, row.step, row.metrics) for row in rows(view)] for view in views]
    assert seen[0] == seen[1] and {state for _, state, _, _ in seen[0]} == {"done"}
    assert all(view.inner.get(layout.packed_spec(job.name)).data for view in views)
