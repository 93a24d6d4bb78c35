"""Pickled weights as safetensors: what is not plain is named, and nothing of it runs."""

from __future__ import annotations

import collections
import pickle
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hostler.errors import UsageError
from hostler.train.models import unpickled


def test_module_that_was_saved_whole_is_named(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 1), tmp_path / "model.pt")
    with pytest.raises(UsageError) as caught:
        unpickled.convert(tmp_path / "model.pt", "model.pt")
    assert "more than plain tensors (a torch.nn.modules.linear.Linear)" in caught.value.message


def test_pickle_of_another_program_is_refused_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"x": collections.Counter("aab")}, protocol=4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UsageError, match=r"m\.pkl is not converted"):
            unpickled.convert(tmp_path / "m.pkl", "m.pkl")


def test_damaged_pickle_is_refused_without_advice_to_programmers(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"\x80\x02notapickle")
    with pytest.raises(UsageError) as caught:
        unpickled.convert(tmp_path / "m.bin", "m.bin")
    assert caught.value.message.endswith("torch cannot read it (UnpicklingError: Unsupported operand 110)")


def test_tensors_that_share_memory_are_each_written(tmp_path: Path) -> None:
    whole = torch.arange(4.0)
    torch.save({"a": whole, "half": whole[:2], "bf": whole.bfloat16(), "n": 3}, tmp_path / "s.pt")
    made = unpickled.convert(tmp_path / "s.pt", "s.pt")
    found = load_file(made.path)
    assert {name: value.tolist() for name, value in found.items()} == {
        "a": [0.0, 1.0, 2.0, 3.0], "half": [0.0, 1.0], "bf": [0.0, 1.0, 2.0, 3.0]
    }  # fmt: skip
    assert made.left_out == ("n",) and found["bf"].dtype is torch.bfloat16
