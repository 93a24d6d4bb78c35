from __future__ import annotations

import pytest
import torch

from hostler.errors import MachineError, SpecError, UsageError
from hostler.sdk.params import defaults
from hostler.train import ranks
from hostler.train.config import Config
from hostler.train.data.feed import Share
from hostler.train.evaluation import ScoreMeter
from hostler.train.identity import ELSEWHERE, params_of
from hostler.train.ranks import TrainRanks, device_of, meet, said, trained, visible, wanted

CPU = torch.device("cpu")


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")


@pytest.mark.usefixtures("second_of_two")
def test_batch_that_ranks_cannot_share_is_refused_with_an_alternative() -> None:
    with pytest.raises(SpecError, match=r"batch_size 7 cannot be divided among 2 ranks \(batch_size: 6 can"):
        meet(Config(batch_size=7))
    with pytest.raises(SpecError, match=r"batch_size: 2 can"):
        meet(Config(batch_size=1))


@pytest.mark.usefixtures("second_of_two")
def test_several_processes_that_were_told_to_train_alone_are_refused() -> None:
    with pytest.raises(SpecError, match="multi_gpu: false, but 2 processes"):
        meet(Config(multi_gpu=False))


@pytest.mark.parametrize(
    ("devices", "count", "text"),
    [
        (0, 1, "no GPU is visible: one process trains"),
        (1, 1, "one GPU is visible: one process trains"),
        (4, 4, "4 devices are visible: a process trains on each"),
        (8, 5, "5 of 8 devices train: batch_size 100 cannot be divided among more"),
    ],
)
def test_each_visible_device_that_a_batch_allows_is_taken(devices: int, count: int, text: str) -> None:
    found = wanted(Config(batch_size=100), devices)
    assert (found.count, found.said) == (count, f"multi_gpu: {text}")


def test_one_device_that_is_asked_for_is_the_only_one() -> None:
    assert wanted(Config(multi_gpu=False), 8).count == 1 and not wanted(Config(multi_gpu=False), 8).said
    assert wanted(Config(device="cuda:3"), 8).count == wanted(Config(device="cpu"), 8).count == 1
    assert wanted(Config(device="cuda"), 4).count == 4


def test_visible_devices_are_those_that_the_user_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_DEVICES", "3")
    assert visible() == 3 and "3 devices are visible, one trains" in said(Config(batch_size=3), TrainRanks())
    monkeypatch.setenv("HOSTLER_DEVICES", "many")
    with pytest.raises(UsageError, match="HOSTLER_DEVICES=many is not a number of devices"):
        visible()
    monkeypatch.delenv("HOSTLER_DEVICES")
    assert visible() == (torch.cuda.device_count() if torch.cuda.is_available() else 0)


def test_only_who_counts_more_devices_than_gpus_shares_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(ranks, "_usable", lambda name: name)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert device_of(Config(device="cuda")) == "cuda:1", "which will say that there is none"
    monkeypatch.setenv("HOSTLER_DEVICES", "2")
    assert device_of(Config(device="cuda")) == "cuda:0"
    assert "they share 1 GPU" in said(Config(device="cuda"), TrainRanks(1, 2))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert said(Config(device="cuda"), TrainRanks(1, 2)) == "2 processes train together"


def test_who_did_not_ask_for_devices_is_not_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOSTLER_DEVICES", "1")
    assert trained(Config(), asked=False) is None and capsys.readouterr().err == ""
    assert trained(Config(), asked=True) is None
    assert capsys.readouterr().err == "hostler: multi_gpu: one GPU is visible: one process trains\n"


def test_the_shares_of_a_batch_are_the_batch() -> None:
    for whole in range(1, 9):
        assert sum(TrainRanks(rank, 3).mine(whole) for rank in range(3)) == whole
    shares = [Share(rank, 3).of(torch.arange(7)).tolist() for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]


def test_rank_without_an_example_takes_one_that_does_not_count() -> None:
    assert Share(2, 3).of(torch.arange(2)).tolist() == [0] and TrainRanks(2, 3).mine(2) == 0


def test_sums_of_an_epoch_move_to_another_number_of_ranks() -> None:
    before = [ScoreMeter(CPU, 2), ScoreMeter(CPU, 2)]
    for meter, loss in zip(before, (1.0, 3.0), strict=True):
        meter.add(torch.tensor(loss), torch.tensor(2), 4)
    after = [ScoreMeter(CPU, 4) for _ in range(4)]
    for rank, meter in enumerate(after):
        meter.load_state_dict(before[rank % 2].state_dict())
    sums = sum(meter.state_dict()["sums"] for meter in after)
    assert sums.tolist() == [16.0, 4.0, 8.0] and all(meter.moved for meter in after)


def test_machine_settings_are_not_part_of_a_trainings_identity() -> None:
    params = params_of(Config(output_dir="somewhere", base_lr=2.0))
    assert params.base_lr == 2.0 and not [name for name in ELSEWHERE if hasattr(params, name)]


def test_the_project_learns_the_defaults_whatever_a_run_was_given() -> None:
    known = defaults(params_of(Config(base_lr=2.0, data_splits_map={"train": "a"})))
    assert known["base_lr"] == 1.0 and known["momentum"] == 0.9
    assert not [name for name in known if name.startswith("data_splits_map")]


@pytest.mark.parametrize("name", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(MachineError, match=f"there is no device {name} here"):
        device_of(Config(device=name))
