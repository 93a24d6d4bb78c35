"""Files that a script left in its working folder: which are its own, and which of them are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostler import settings
from hostler.attempt import working_files
from hostler.attempt.working_files import Made, choose, look, made, not_kept

GB = 10**9


def put(folder: Path, *names: str, text: str = "x") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def names(folder: Path, before: working_files.Look) -> list[str]:
    return [file.name for file in made(before, folder)]


def test_new_and_changed_files_are_made_and_others_not(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "table.csv", "lib/a.py", "same")
    before = look(tmp_path)
    assert names(tmp_path, before) == []
    put(tmp_path, "table.csv", text="longer")
    put(tmp_path, "checkpoints/model.pt", "lightning_logs/version_0/metrics.csv")
    expected = ["checkpoints/model.pt", "lightning_logs/version_0/metrics.csv", "table.csv"]
    assert names(tmp_path, before) == expected


def test_caches_are_not_files_of_the_script(tmp_path: Path) -> None:
    before = look(tmp_path)
    put(
        tmp_path, "lib/__pycache__/a.pyc", ".git/index", ".pytest_cache/x", "node_modules/x/y.js", "lib/b.pyc"
    )
    put(tmp_path, "env/pyvenv.cfg", "env/bin/python", "hub/CACHEDIR.TAG", "hub/blob", "lib/kept.bin")
    assert names(tmp_path, before) == ["lib/kept.bin"]


def test_a_link_out_of_the_folder_is_not_made(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "cache"
    put(outside, "data.bin")
    put(work, "train.py")
    before = look(work)
    put(work, "epoch9.pt", text="weights")
    (work / "last.pt").symlink_to("epoch9.pt")
    (work / "data.bin").symlink_to(outside / "data.bin")
    (work / "folder").symlink_to(outside)
    (work / "nowhere").symlink_to("gone")
    found = made(before, work)
    assert [(file.name, file.is_link, file.size) for file in found] == [
        ("epoch9.pt", False, 7),
        ("last.pt", True, 0),
    ]
    assert found[0].path == found[1].path


def files(**sizes: int) -> list[Made]:
    return [Made(name.replace("__", "/"), Path(name), size) for name, size in sizes.items()]


def test_what_is_over_the_limit_is_left_out_whole(tmp_path: Path) -> None:
    left = files(checkpoints__a=GB, checkpoints__b=1, log=10, plots__x=20)
    kept, over = choose(left, GB)
    assert [file.name for file in kept] == ["log", "plots/x"]
    assert [(group.name, len(group.files)) for group in over] == [("checkpoints/", 2)]
    assert choose(left, 2 * GB) == (choose(left, 9 * GB)[0], [])


@pytest.mark.parametrize(("size", "kept"), [(GB, ["model.pt"]), (GB + 1, [])])
def test_default_limit_is_a_gigabyte_to_the_byte(tmp_path: Path, size: int, kept: list[str]) -> None:
    before = look(tmp_path)
    put(tmp_path, "model.pt", text="")
    os.truncate(tmp_path / "model.pt", size)
    chosen, over = choose(made(before, tmp_path), settings.sizes().outputs_max)
    assert [file.name for file in chosen] == kept and len(over) == 1 - len(kept)


def test_the_line_names_files_size_limit_and_both_ways_out() -> None:
    groups = choose(files(checkpoints__a=4 * GB, checkpoints__b=10**8, checkpoints__c=10**8), GB)[1]
    assert not_kept(groups, GB) == [
        "not kept: checkpoints/ (3 files, 4.2 GB) is over the limit of 1 GB; "
        "add  outputs: [checkpoints/]  or  outputs: none  to hostler.yaml"
    ]
    assert not_kept([], GB) == []


@pytest.mark.parametrize(
    ("name", "entry"),
    [("a b/", '"a b/"'), ("ckpt[1]", '"ckpt[[]1]"'), ("a,b", '"a,b"'), ("x-1.pt", "x-1.pt")],
)
def test_an_odd_name_is_quoted_in_the_line_for_outputs(name: str, entry: str) -> None:
    group = working_files.FileGroup(name, (Made(name, Path(name), 2 * GB),))
    assert f"outputs: [{entry}]" in not_kept([group], GB)[0]
