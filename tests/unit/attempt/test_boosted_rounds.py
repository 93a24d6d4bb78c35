"""Rounds of XGBoost's model files, written as its versions write them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import servers
from hostler.attempt.boosted_rounds import boosted_rounds

BEGIN = b"{L" + struct.pack(">q", 7) + b"learner{L" + struct.pack(">q", 10) + b"attributes{}"
ARRAYS = {
    "a.json": b'{"learner":{"attributes":{},"model":{"iteration_indptr":[0,6,12,18,24],"tree_info":[0,1]}}}',
    "a.ubj": BEGIN + b"iteration_indptr[#L" + struct.pack(">q", 5) + b"i\0i\1i\2i\3i\4",
    "b.ubj": BEGIN + b"iteration_indptr[$l#L" + struct.pack(">q", 5) + bytes(20),
    "c.ubj": BEGIN + b"iteration_indptr[$i#i\x05" + bytes(5),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_model_file_tells_its_rounds(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_bytes(ARRAYS[name])
    assert boosted_rounds(tmp_path) == 4


def test_other_files_have_no_rounds(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"step": 3, "iteration_indptr": [0, 1, 2]}')
    (tmp_path / "cut.ubj").write_bytes(ARRAYS["a.ubj"][:45])
    (tmp_path / "model.txt").write_bytes(ARRAYS["a.json"])
    (tmp_path / "gone.json").symlink_to("nowhere")
    assert boosted_rounds(tmp_path) == 0


def test_real_xgboost_models_tell_their_rounds(tmp_path: Path) -> None:
    xgboost = servers.library("xgboost")
    numpy = servers.library("numpy")
    x = numpy.arange(40.0).reshape(20, 2)
    data = xgboost.DMatrix(x, (x.sum(1) > 30).astype(int))
    for rounds, name in ((3, "m.json"), (7, "m.ubj")):
        xgboost.train({"max_depth": 2}, data, rounds).save_model(tmp_path / name)
        assert boosted_rounds(tmp_path) == rounds
