"""Which files of a checkpoint folder belong together: by their names, and the word of their writers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.attempt import folder_parts
from hostler.attempt.folder_parts import Declared
from hostler.records.checkpoint.saved_folder import COMMIT, Mark
from hostler.records.checkpoint.tree import FileRow, TreeScan

NAMES = st.sampled_from(
    [
        "last.pt",
        "latest",
        "checkpoint-20/model.pt",
        "checkpoint-20/optimizer.pt",
        "checkpoint-40/model.pt",
        "epoch=3.ckpt",
        "logs/epoch=3-step=120.ckpt",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        f"{Mark(7).name}/{COMMIT}",
        f"{Mark(7).name}/state-0000.json",
        f"{Mark(8).name}/state-0000.json",
        "trainer/checkpoint-5/model.pt",
        "trainer/checkpoint-5/done",
        "trainer/runs/events",
        "atomic.ckpt",
        ".atomic.new",
    ]
)
DECLARED = Declared(("atomic.ckpt",), (".atomic.new",), {"trainer": "done"})


def row(name: str, mtime: int = 1) -> FileRow:
    return FileRow(name, 10, mtime, hash(name) % 1000, 0o100644)


def tree(*names: str) -> TreeScan:
    return TreeScan(tuple(row(name) for name in sorted(names)))


def names(scanned: TreeScan) -> list[str]:
    return [row.name for row in scanned.rows]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("checkpoint-20/model.pt", "checkpoint=20"),
        ("trainer/checkpoint-20/global_step20/rank_0.pt", "trainer/checkpoint=20"),
        ("epoch=3-step=120.ckpt", "epoch=3,step=120"),
        ("logs/version_0/checkpoints/epoch=3.ckpt", "logs/version_0/checkpoints/epoch=3"),
        ("checkpoint-3.pth.tar", "checkpoint=3"),
        ("model_epoch3.pt", "epoch=3"),
        ("optimizer_ep3.pt", "epoch=3"),
        ("model-step-20-00001-of-00004.safetensors", "step=20"),
        ("0020/weights.npz", "number=20"),
        ("5.pt", "number=5"),
        ("model_0000010.pt", "model=10"),
        ("optimizer_10.pt", "model=10"),
        ("last.pt", ""),
        ("model.safetensors", ""),
        ("model-00001-of-00002.safetensors", ""),
        ("checkpoint-00001-of-00004.pt", ""),
        ("state_rank0.pt", ""),
        ("resnet50.pt", ""),
        ("version_2/last.ckpt", ""),
        ("timestep5.pt", ""),
    ],
)
def test_counter_in_a_name_makes_a_unit(name: str, key: str) -> None:
    assert folder_parts.unit_of(name) == key


def test_files_with_the_same_counter_are_one_unit() -> None:
    found = folder_parts.parts(tree("model-epoch-3.pt", "optimizer-epoch-3.pt", "model-epoch-4.pt"))
    assert sorted(map(names, found.units.values())) == [
        ["model-epoch-3.pt", "optimizer-epoch-3.pt"],
        ["model-epoch-4.pt"],
    ]


def test_pointer_and_weights_without_counter_are_the_lump() -> None:
    found = folder_parts.parts(tree("latest", "model.pt", "optimizer.pt", "global_step20/model.pt"))
    assert names(found.lump) == ["latest", "model.pt", "optimizer.pt"]


@settings(deadline=None)
@given(st.sets(NAMES))
def test_every_file_is_of_one_kind_or_incomplete(chosen: set[str]) -> None:
    found = folder_parts.parts(tree(*chosen), DECLARED)
    kinds = [found.library, found.declared, found.lump, *found.units.values()]
    taken = [name for kind in kinds for name in names(kind)]
    assert len(taken) == len(set(taken)) and sorted(taken) == names(found.all)
    for name in chosen - set(taken):
        unfinished = name.startswith("trainer/checkpoint-5/") and "trainer/checkpoint-5/done" not in chosen
        assert unfinished or name == ".atomic.new" or "step-0000" in name


@settings(deadline=None)
@given(st.sets(NAMES), st.sets(NAMES))
def test_kind_of_a_unit_does_not_depend_on_other_files(some: set[str], more: set[str]) -> None:
    few, many = folder_parts.parts(tree(*some)).units, folder_parts.parts(tree(*some, *more)).units
    assert all(set(rows.rows) <= set(many[key].rows) for key, rows in few.items())


@settings(deadline=None)
@given(st.sets(NAMES))
def test_rewritten_unit_belongs_to_the_lump(chosen: set[str]) -> None:
    before = folder_parts.parts(tree(*chosen))
    after = folder_parts.parts(tree(*chosen), rewritten=set(before.units))
    assert not after.units and set(after.all.rows) == set(before.all.rows)


@settings(deadline=None)
@given(st.sets(NAMES), st.sets(NAMES))
def test_files_that_come_or_go_leave_a_unit_unwritten(some: set[str], more: set[str]) -> None:
    assert not folder_parts.was_rewritten(tree(*some), tree(*more))
    assert folder_parts.holds(tree(*some, *more), tree(*some))


def test_file_with_other_bytes_makes_a_unit_rewritten() -> None:
    assert folder_parts.was_rewritten(tree("epoch-3.pt"), TreeScan((row("epoch-3.pt", mtime=2),)))


def test_declared_unit_is_complete_with_its_mark_and_named_files() -> None:
    whole = tree("trainer/checkpoint-5/model.pt", "trainer/checkpoint-5/done")
    assert names(folder_parts.parts(whole, DECLARED).declared) == names(whole)
    half = folder_parts.parts(whole, DECLARED, manifest=lambda mark: {"model.pt": 10, "optimizer.pt": 10})
    assert not half.all.rows, "it is being removed"
    assert not folder_parts.parts(tree("trainer/checkpoint-5/model.pt"), DECLARED).all.rows
