from __future__ import annotations

from typing import Any

import pytest
import torch

from hostler.errors import MachineError
from hostler.spec.files import yaml12
from hostler.train.memory import fitting, more
from small_trainings import Place, place, same

__all__ = ["place"]
# A model that holds no more than so many examples at a time, with all that a second try could change
NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(6, 12), torch.nn.BatchNorm1d(12)
        self.drop, self.last = torch.nn.Dropout(0.5), torch.nn.Linear(12, 3)

    def forward(self, x):
        x = self.drop(torch.relu(self.norm(self.first(x))))
        if len(x) > {most}:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.last(x)
"""


def net(place: Place, most: int) -> dict[str, Any]:
    (place.folder / "net.py").write_text(NET.replace("{most}", str(most)))
    return {"model": "net.py:Net", "batch_size": 12, "eval_batch_size": 2, "train_length": 2}


def test_a_batch_of_any_size_is_cut_at_once() -> None:
    assert more(2**31 - 1, 1) == 2**31 - 1  # a prime


def test_pieces_divide_the_batch_and_are_at_least_half_size() -> None:
    tried, pieces = [], 1
    while (found := more(100, pieces)) is not None:
        tried.append(pieces := found)
    assert tried == [2, 4, 10, 20, 50, 100]
    assert more(7, 1) == 7 and more(1, 1) is None
    assert fitting(100, 1, lambda count: 100 // count <= 30) == 4
    assert fitting(100, 1, lambda count: False) is None


def test_without_leave_it_says_the_batch_that_would_fit(place: Place) -> None:
    with pytest.raises(MachineError) as caught:
        place.train(**net(place, 3))
    assert "a micro-batch of 12 examples does not fit; one of 3 does" in caught.value.message
    assert "grad_accum_steps: 4 keeps the batch of 12" in caught.value.hint
    place.train(**{**net(place, 3), "grad_accum_steps": 4})  # as it says


def test_where_a_single_example_is_too_large_it_says_so(place: Place) -> None:
    with pytest.raises(MachineError, match="does not fit even with one example"):
        place.train(**net(place, 0), on_out_of_memory="halve")


def test_an_evaluation_that_does_not_fit_says_what_would(place: Place) -> None:
    config = {**net(place, 3), "batch_size": 3, "eval_batch_size": 16}
    with pytest.raises(
        MachineError, match=r"batches of 16 examples does not fit; 2 do \(eval_batch_size: 2\)"
    ):
        place.train(**config)
    rows = place.train(**config, on_out_of_memory="halve")
    whole = place.train(**{**net(place, 99), "batch_size": 3, "eval_batch_size": 16}, log_interval=11)
    assert [r["test/last/accuracy"] for r in rows] == [r["test/last/accuracy"] for r in whole]
    assert [r["test/last/loss"] for r in rows] == pytest.approx([r["test/last/loss"] for r in whole])


def test_halved_batch_trains_like_micro_batches_to_the_bit(place: Place) -> None:
    place.train(**net(place, 3), on_out_of_memory="halve")
    halved = place.weights()
    assert "goes on with grad_accum_steps 4; the batch stays 12" in place.log()
    written = yaml12.load((place.out / "config.yaml").read_text(), "config.yaml").value
    assert (written["batch_size"], written["grad_accum_steps"], written["batch_size_accum"]) == (12, 4, 3)
    place.train(**net(place, 99), grad_accum_steps=4)
    assert same(halved, place.weights())


def test_memory_running_out_midway_neither_changes_nor_repeats_a_step(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From step 5 on: the same as a training that changes over there by itself."""
    from hostler.train.step import Step

    go, steps = Step.__call__, 0

    def changes_over(self: Step, *given: Any) -> Any:
        nonlocal steps
        steps += 1
        self.pieces.training = 2 if steps > 4 else 1
        return go(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Step, "__call__", changes_over)
        place.train(**net(place, 99))
    wanted, steps = place.weights(), 0

    def shrinks(self: Step, *given: Any) -> Any:
        nonlocal steps
        steps += 1
        self._model.most = 6 if steps == 5 else 99
        return go(self, *given)

    text = NET.replace("if len(x) > {most}", "if len(x) > getattr(self, 'most', 99)")
    (place.folder / "net2.py").write_text(text)
    monkeypatch.setattr(Step, "__call__", shrinks)
    place.train(**{**net(place, 99), "model": "net2.py:Net"}, on_out_of_memory="halve")
    assert "out of memory" in place.log() and same(wanted, place.weights())


def test_other_errors_are_not_taken_for_it(place: Place) -> None:
    (place.folder / "bad.py").write_text(
        NET.replace("{most}", "0").replace('torch.OutOfMemoryError("CUDA', 'RuntimeError("not')
    )
    with pytest.raises((RuntimeError, Exception), match="not out of memory"):
        place.train(model="bad.py:Net", on_out_of_memory="halve")


def test_a_host_that_has_no_memory_left_is_one(place: Place) -> None:
    from hostler.train.memory import ran_out

    assert ran_out(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"))
    assert ran_out(torch.OutOfMemoryError()) and not ran_out(RuntimeError("shapes"))
