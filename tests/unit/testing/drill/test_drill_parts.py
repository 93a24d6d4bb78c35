"""Files taken apart, so that a difference has a name."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from hostler.drill.collect import parts, tidied
from hostler.drill.witness import position


def test_an_archive_is_its_members(tmp_path: Path) -> None:
    for name, content in (("one.npz", b"a"), ("two.npz", b"b")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("w.npy", content)
            archive.writestr("same.npy", b"same")
    one, two = parts(tmp_path / "one.npz"), parts(tmp_path / "two.npz")
    assert one["same.npy"] == two["same.npy"] and one["w.npy"] != two["w.npy"]


def test_torch_archive_is_the_same_under_any_file_name(tmp_path: Path) -> None:
    for name in ("last", "new"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(f"{name}/data/0", b"weights")
    assert parts(tmp_path / "last") == parts(tmp_path / "new")


def test_safetensors_are_their_tensors(tmp_path: Path) -> None:
    header = json.dumps({"a": {"data_offsets": [0, 2]}, "b": {"data_offsets": [2, 4]}}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"xxyy")
    assert sorted(parts(path)) == ["a", "b"]


def test_json_is_its_keys(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"a": {"b": 1}, "c": [2]}')
    assert parts(tmp_path / "s.json") == {"a.b": "1", "c": "[2]"}


def test_what_is_not_what_its_name_says_is_one_whole(tmp_path: Path) -> None:
    for name in ("x.json", "x.safetensors", "x.bin"):
        (tmp_path / name).write_bytes(b"no")
        assert list(parts(tmp_path / name)) == [""]


def test_library_checkpoint_counts_only_what_is_tracked() -> None:
    files = {
        "checkpoint/step-000000000080.1/COMMIT": {"": "1"},
        "checkpoint/step-000000000080.1/state-0000.json": {"objects.model.w": "2", "rng.python": "3"},
        "checkpoint/own.bin": {"": "4"},
    }
    assert tidied(files) == {
        "checkpoint/last/state-0000.json": {"objects.model.w": "2"},
        "checkpoint/own.bin": {"": "4"},
    }


def test_line_shows_where_the_script_is_without_its_measurements() -> None:
    assert position("epoch 3/10  loss 0.5123 acc 91.2%") == position("epoch 3/10  loss 0.4 acc 1e-3")
    assert position("epoch 3 loss 0.5") != position("epoch 4 loss 0.5")
    assert position('{"step": 7, "loss": 1}') == position('{"loss": 2, "step": 7}') == "step 7"
