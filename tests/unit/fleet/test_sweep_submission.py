"""Submitting a sweep: the same few writes however many runs there are."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from hostler.backends.project_file import load_sweep
from hostler.errors import MissingError, SpecError, UsageError
from hostler.fleet import preview
from hostler.fleet.submit import code_mark
from hostler.fleet.sweep import Swept, draft_sweep, submit_sweep
from hostler.records.sweep import sweeps
from hostler.spec.files.sweepfile import SweepFile
from hostler.spec.project import default_project
from hostler.store.memory import MemoryStore

TEN = list(range(10))


class Counting(MemoryStore):
    """A store that counts what is written to it."""

    writes = 0

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        self.writes += 1
        return super().put(key, data, if_absent=if_absent)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text("")
    return tmp_path / "project"


def read(folder: Path, text: str) -> SweepFile:
    (folder / "s.yaml").write_text(text)
    return load_sweep(folder / "s.yaml", default_project(folder))


def submit(store: MemoryStore, folder: Path, text: str) -> Swept:
    file = read(folder, text)
    return submit_sweep(store, file, draft_sweep(file))


def grid(count: int) -> str:
    axes = "".join(f"  {name}: {{start: 0, step: 1, count: {count}}}\n" for name in "abc")
    return f"name: s\ncommand: python train.py\nparameters:\n{axes}"


def test_million_runs_take_as_many_writes_as_eight(folder: Path) -> None:
    few, many = Counting("memory:few"), Counting("memory:many")
    assert submit(few, folder, grid(2)).job.count == 8
    tracemalloc.start()
    assert submit(many, folder, grid(100)).job.count == 1_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert many.writes == few.writes
    assert peak < 20_000_000
    job = sweeps.load(many, "s")
    assert job.params(job.count - 1) == {"a": 99, "b": 99, "c": 99}


def test_a_million_runs_are_planned_without_making_them(folder: Path) -> None:
    store = MemoryStore("memory:plan")
    file = read(folder, grid(100))
    found = preview.look(store, draft_sweep(file), code_mark(store, file.project))
    assert found.runs == 1_000_000
    assert list(store.list("")) == []


def test_the_same_file_twice_writes_no_round(folder: Path) -> None:
    store = Counting("memory:twice")
    assert submit(store, folder, grid(2)).version == 1
    assert submit(store, folder, grid(2)).version == 0


def test_an_edit_is_a_round_of_its_own(folder: Path) -> None:
    store = Counting("memory:edit")
    submit(store, folder, grid(2))
    done = submit(store, folder, grid(3))
    assert (done.version, len(done.edit.new), len(done.edit.kept)) == (2, 19, 8)
    assert sweeps.load(store, "s").count == 27


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("parameters: {lr: []}", "s.yaml:"),
        ("parameters: {}", "nothing to vary"),
        (
            f"parameters: {{{', '.join(f'k{i}: {list(range(10))}' for i in range(12))}}}",
            "1,000,000,000,000 runs",
        ),
        ("parameters: {lr: {min: 0.1, max: 0.2}}", "s.yaml:"),
        ("method: random\nparameters: {lr: {min: 0.1, max: 0.2}}", "random search needs a number of runs"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(folder: Path, text: str, said: str) -> None:
    store = Counting("memory:bad")
    with pytest.raises(SpecError) as error:
        submit(store, folder, f"name: s\ncommand: python train.py\n{text}\n")
    assert said in str(error.value)
    assert store.writes == 0


def test_missing_script_is_refused_before_any_write(folder: Path) -> None:
    store = Counting("memory:script")
    with pytest.raises(MissingError, match=r"trian\.py does not exist"):
        submit(store, folder, grid(2).replace("train.py", "trian.py"))
    assert store.writes == 0


def test_two_sweeps_of_one_name_with_different_content_are_refused(folder: Path) -> None:
    store = Counting("memory:name")
    submit(store, folder, grid(2))
    before = store.writes
    with pytest.raises(UsageError, match="the sweep 's' exists already"):
        submit(store, folder, "name: s\ncommand: python train.py\nparameters: {lr: [1, 2]}\n")
    assert sweeps.load_version(store, "s")[1] == 1
    assert store.writes - before < 5  # the project's probe and its code, no round


def test_sweep_file_is_not_part_of_the_code(folder: Path) -> None:
    store = Counting("memory:code")
    one = submit(store, folder, grid(2))
    two = submit(store, folder, grid(3))
    assert one.job.source.snapshot == two.job.source.snapshot
    (folder / "train.py").write_text("x = 1")
    assert submit(store, folder, grid(3)).job.source.snapshot != two.job.source.snapshot


def test_a_script_beside_the_file_runs_there(folder: Path) -> None:
    (folder / "exp").mkdir()
    (folder / "exp" / "go.py").write_text("")
    (folder / "exp" / "s.yaml").write_text("command: python go.py\nparameters: {lr: [1]}\n")
    file = load_sweep(folder / "exp" / "s.yaml", default_project(folder))
    assert draft_sweep(file).cwd == "exp"
    (folder / "exp" / "t.yaml").write_text("command: python train.py\nparameters: {lr: [1]}\n")
    assert draft_sweep(load_sweep(folder / "exp" / "t.yaml", default_project(folder))).cwd == ""
