from __future__ import annotations

import pytest
import torch

import hostler
from hostler.errors import Diverged, MachineError, SpecError
from hostler.spec.files import yaml12
from hostler.train.step import Step
from hostler.trainer import experiment_generator
from small_trainings import SMALL, Place, place, same

__all__ = ["place"]


def test_rows_logs_and_the_resolved_config_are_written(place: Place) -> None:
    rows = place.train(log_interval=4, averaging="ema_0.9")
    assert [row.number for row in rows] == [1, 2]
    train = [
        f"train/{w}" for w in ("loss", "accuracy", "time", "data_time", "seen_examples", "learning_rate")
    ]
    others = [f"test/{m}/{w}" for m in ("last", "av") for w in ("loss", "accuracy", "time", "data_time")]
    assert {"timestamp", *train, *others} <= set(place.rows()[0])
    assert [row["train/seen_examples"] for row in place.rows()] == ["48", "96"]
    assert float(place.rows()[0]["train/throughput"]) > 0
    written = yaml12.load((place.out / "config.yaml").read_text(), "config.yaml").value
    assert written["data_n_examples"] == {"train": 48, "test": 48} and written["data_n_classes"] == 3
    assert (written["model_input_shape"], written["model_output_dim"]) == ([6], 3)
    assert (written["eval_batch_size"], written["batch_size_accum"]) == (8, 8)
    assert written["device"] == "cpu" and written["host_name"]
    asked = yaml12.load((place.out / "spec.yaml").read_text(), "spec.yaml").value
    assert asked["data_n_classes"] is None and asked["model_output_dim"] is None
    assert "train: step 4 of 12" in place.log() and "test/av: loss" in place.log()
    assert (place.out / "done").exists()


def test_seeds_that_were_drawn_stand_in_the_frame(place: Place) -> None:
    place.train(seed_model=None, seed_training=None)
    written = yaml12.load((place.out / "config.yaml").read_text(), "config.yaml").value
    frame = hostler.frame(str(place.folder / ".hostler"))
    for name in ("seed_model", "seed_training", "data_n_classes"):
        assert frame[name][0] == written[name] is not None
    assert frame["data_n_examples.train"][0] == 48 and frame["seed_order"][0] is None


def test_the_written_config_trains_the_same_again(place: Place) -> None:
    place.train()
    first = place.weights()
    written = yaml12.load((place.out / "config.yaml").read_text(), "config.yaml").value
    place.train(**{**written, "log_interval": 3})
    assert same(first, place.weights())


def test_who_drives_the_loop_has_the_model_between_epochs(place: Place) -> None:
    seen = []
    for epoch in experiment_generator({**SMALL, "averaging": "poly_0"}):
        with torch.no_grad():
            seen.append(float(epoch.model(torch.ones(1, 6)).sum()))
        assert epoch.average is not None and epoch.config.data_n_classes == 3
    assert len(set(seen)) == 2


def test_seeds_are_drawn_and_written_down_where_none_are_given(place: Place) -> None:
    place.train(seed_model=None, seed_training=None)
    written = yaml12.load((place.out / "config.yaml").read_text(), "config.yaml").value
    assert isinstance(written["seed_model"], int) and isinstance(written["seed_training"], int)


@pytest.mark.parametrize(
    ("loss", "most", "said"),
    [("base_lr", 1e6, "max_allowed_loss"), ("nan", 1e6, "nan after|nan at"), ("small", 1e-9, "1e-09")],
)
def test_a_loss_that_runs_away_ends_the_run_as_diverged(
    place: Place, loss: str, most: float, said: str
) -> None:
    (place.folder / "my.py").write_text("def nan(out, y): return out.sum() * float('nan')")
    changed = {"base_lr": {"base_lr": 1e30}, "nan": {"loss": "my.py:nan"}, "small": {}}[loss]
    with pytest.raises(Diverged, match=said):
        place.train(max_allowed_loss=most, **changed)
    assert list(hostler.frame()["state"]) == ["diverged"]
    assert not (place.out / "done").exists() and "ended: the loss is" in place.log()


@pytest.mark.parametrize(("goal", "best"), [("min", 0), ("max", -1)])
def test_best_checkpoint_has_the_least_or_the_largest_value(place: Place, goal: str, best: int) -> None:
    rows = place.train(
        train_length=4, base_lr=3.0, save_best_checkpoint=True, best_checkpoint_metric="test/last/loss",
        best_checkpoint_goal=goal, save_freq=1,
    )  # fmt: skip
    losses = [row["test/last/loss"] for row in rows]
    assert len(set(losses)) == 4
    chosen = sorted(range(4), key=lambda n: losses[n])[best]
    assert same(
        place.weights("checkpoints/best.safetensors"),
        place.weights(f"checkpoints/epoch_{chosen + 1:05d}.safetensors"),
    )


def test_best_of_last_and_average_is_kept(place: Place) -> None:
    rows = place.train(
        averaging="ema_0.999",
        train_length=1,
        save_best_checkpoint=True,
        best_checkpoint_metric="test/.*/loss",
    )
    better = "" if rows[0]["test/last/loss"] < rows[0]["test/av/loss"] else "_av"
    assert same(place.weights("checkpoints/best.safetensors"), place.weights(f"model{better}.safetensors"))


@pytest.mark.parametrize("goal", ["min", "max"])
def test_patience_ends_it_in_either_direction(place: Place, goal: str) -> None:
    rows = place.train(
        train_length=8, early_stopping_patience=2, best_checkpoint_metric="train/loss", base_lr=0.05,
        best_checkpoint_goal=goal,
    )  # fmt: skip
    losses = [row["train/loss"] for row in rows]
    assert len(rows) == 3 if goal == "max" else len(rows) > 3
    if goal == "max":
        assert max(losses[-2:]) < losses[0] and "stopped early" in place.log()


def test_metric_that_fits_no_column_is_refused_before_the_training(place: Place) -> None:
    with pytest.raises(SpecError, match=r"'val/acc' fits no column.*test/last/accuracy"):
        place.train(save_best_checkpoint=True, best_checkpoint_metric="val/acc")
    assert not (place.out / "stats.csv").exists()


def test_nothing_of_the_trial_pass_stays(place: Place) -> None:
    config = {"dataset": "synthetic/3x8x8_4_32", "model": "tiny/wrn_10_1_0.3", "train_length": 1}
    place.train(**config)
    first = place.weights()
    place.train(**config, trial_pass=False, log_interval=9)
    assert same(first, place.weights())


def test_failure_of_an_evaluation_is_found_before_the_training(place: Place) -> None:
    (place.folder / "my.py").write_text(
        "import torch\nfrom hostler.train.data.split import Arrays, Data\n"
        "def data(config):\n"
        "    x, y = torch.randn(20, 6), torch.arange(20) % 3\n"
        "    return Data({'train': Arrays(x, y), 'test': Arrays(torch.randn(20, 5), y)}, (6,), 3)\n"
    )
    with pytest.raises(SpecError, match=r"cannot take inputs of the shape \(5,\)"):
        place.train(dataset="my.py:data")
    assert not (place.out / "stats.csv").exists()


def test_an_evaluation_says_how_far_it_is(place: Place) -> None:
    place.train(log_interval_eval=2, train_length=1)
    assert "test/last: 2 batches" in place.log() and "test/last: 6 batches" in place.log()


def test_only_the_average_is_evaluated_where_asked(place: Place) -> None:
    place.train(averaging="ema_0.9", evaluate="av", best_checkpoint_metric="loss")
    assert "test/av/loss" in place.rows()[0] and "test/last/loss" not in place.rows()[0]


def test_several_sets_are_evaluated_and_a_null_one_is_not(place: Place) -> None:
    place.train(data_splits_map="dict(train='train', traineval='train', test=None, val='v')", train_length=1)
    assert {"traineval/last/loss", "val/last/loss"} <= set(place.rows()[0])
    assert "test/last/loss" not in place.rows()[0]


def test_output_dimension_follows_the_classes_and_not_input_width(place: Place) -> None:
    place.train(dataset="synthetic/20_3_48")
    assert place.weights()["1.weight"].shape == (3, 20)


@pytest.mark.parametrize("loss", ["mse", "square"])
def test_square_loss_has_an_accuracy(place: Place, loss: str) -> None:
    rows = place.train(loss=loss, train_length=5)
    assert 0.4 < rows[-1]["test/last/accuracy"] <= 1


def test_evaluation_batches_are_the_training_batches_unless_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = set()
    go = Step.scores

    def seen(self: Step, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> object:
        sizes.add(len(y))
        return go(self, model, x, y)

    monkeypatch.setattr(Step, "scores", seen)
    place.train(train_length=1)
    assert sizes == {8}
    sizes.clear()
    place.train(train_length=1, eval_batch_size=24)
    assert sizes == {24}


def test_channels_last_weights_are_saved_as_others_are(place: Place) -> None:
    config = {"dataset": "synthetic/3x8x8_4_32", "model": "tiny/lenet", "train_length": 1}
    place.train(**config)
    shapes = {name: value.shape for name, value in place.weights().items()}
    place.train(**config, channels_last=True)
    assert {name: value.shape for name, value in place.weights().items()} == shapes


def test_a_folder_is_not_done_while_another_training_writes_there(place: Place) -> None:
    place.train()
    for _ in experiment_generator({**SMALL, "base_lr": 0.2}):
        assert not (place.out / "done").exists()
    assert (place.out / "done").exists()


def test_a_folder_that_cannot_be_written_is_said(place: Place) -> None:
    (place.folder / "file").write_text("")
    with pytest.raises(MachineError, match="file/out cannot be written"):
        place.train(output_dir="file/out")
