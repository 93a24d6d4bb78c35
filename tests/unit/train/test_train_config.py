from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import MissingError, SpecError
from hostler.spec.argv import build
from hostler.spec.files import tracking_words, yaml12
from hostler.spec.job import Job
from hostler.train.config import KEYS, Config
from hostler.train.configfile import dump, from_words, load, make, restated
from hostler.train.identity import trackers_of

DEFAULTS = {
    "log_interval": 10, "log_interval_eval": None, "save_freq": 0, "save_best_checkpoint": False,
    "best_checkpoint_metric": "test/.*/accuracy", "output_dir": None, "log_to_stdout": False,
    "multi_gpu": True, "device": None, "host_name": None, "data_n_examples": None, "data_n_classes": None,
    "batch_size_accum": None,
    "num_workers": 2, "eval_batch_size": None, "max_allowed_loss": 1e6, "early_stopping_patience": None,
    "wandb": False, "wandb_project_name": None, "wandb_run_name": None, "wandb_tags": (), "seed_model": None,
    "seed_training": None, "dataset": "libsvm/a9a", "data_dir": "data", "data_download": True,
    "data_splits_map": {"train": "train", "test": "test"}, "model": "linear/no_bias",
    "model_pretrained": False,
    "model_head_init": None, "model_output_dim": None, "model_input_shape": None, "loss": "log",
    "batch_size": 100,
    "train_length": 100, "train_length_unit": "epoch", "steps_per_epoch": None, "samples_per_epoch": None,
    "grad_accum_steps": 1, "optim_alg": "sgd", "lr_schedule": "constant", "base_lr": 1.0, "weight_decay": 0,
    "weight_decay_biases": 0, "momentum": 0.9, "ada_eps": 1e-8, "warmup_steps": 0, "averaging": None,
}  # fmt: skip


@pytest.mark.parametrize("key", DEFAULTS)
def test_every_key_of_old_files_is_known_with_its_default(key: str) -> None:
    assert getattr(Config(), key) == DEFAULTS[key]


def test_an_unknown_key_is_an_error_with_line_and_nearest(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("batch_size: 10\nbatchsize: 3\n")
    with pytest.raises(
        SpecError, match=r"config.yaml:2: no key named 'batchsize' \(did you mean 'batch_size'"
    ):
        load(file)


def test_words_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("base_lr: 1e-3\nbatch_size: 10\n")
    config = load(file, ["batch_size=20"])
    assert (config.base_lr, config.batch_size, config.momentum) == (0.001, 20, 0.9)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("batch_size=x", "batch_size: 'x' is not a whole number"),
        ("base_lr=fast", "base_lr: 'fast' is not a number"),
        ("compile=fast", "compile: 'fast' is not one of False, True, default, reduce-overhead"),
        ("wandb=1", "wandb: 1 is not true or false"),
        ("batch_size", "is not key=value"),
        ("optim_alg=sdg", "not one of sgd, adam"),
        ("train_length_unit=day", "not one of epoch, step, sample"),
        ("grad_accum_steps=3", "does not divide batch_size 100"),
        ("data_splits_map={test: test}", "does not name a train split"),
        ("base_lr=0", "must be above 0"),
        ("early_stopping_patience=0", "at least 1"),
        ("lr=3", "called base_lr here"),
        ("optim_alg=adma", "did you mean 'adam'"),
        ("loss=lgo", "did you mean 'log'"),
        ("lr_schedule=step", "does not say when and by how much to drop"),
        ("lr_schedule=cosin", "did you mean 'cosine'"),
        ("clip_grad_norm=0", "must be above 0"),
        ("weight_decay=-1", "must be at least 0"),
        ("evaluate=av", "nothing is averaged"),
        ("on_out_of_memory=retry", "not one of say, halve"),
        ("model_options={n_layer:1}", "'n_layer:1' has no value (a space after the colon"),
        ("data_splits_map={train:train,test:test}", "a space after the colon"),
        ("base_lr=1e400", "above 0 and finite"),
        ("seed_training=100000000000000000000", "a seed has 63 bits"),
        ("model_output_dim=0", "must be at least 1"),
        ("lr_schedule=poly_x", "poly_0.5, for example"),
        ("lr_schedule=poly_nan", "is not at least 0 and finite"),
        ("lr_schedule=step_3_inf", "is not at least 0 and finite"),
        ("lr_schedule=step_99999999999_0.1", "are too many"),
        ("lr_schedule=step_9_1e300", "a rate cannot drop so often by the factor"),
        ("batch_size=100000000000000000", "must be below 2147483648"),
        ("batch_size=2147483647 grad_accum_steps=2", "does not divide batch_size 2147483647 (1 does)"),
        ("weight_decay=1e999", "at least 0 and finite"),
        ("momentum=abc", "momentum 'abc' is not a number"),
        ("momentum=1.5 optim_alg=adam", "Adam's are in [0, 1)"),
        ("averaging=swa", "no averaging named 'swa'"),
        ("checkpoint_every=abc", "checkpoint_every: 'abc' is not a duration"),
        ("model_input_shape=3,-1", "model_input_shape is [3, -1], but each must be at least 1"),
    ],
)
def test_bad_values_get_one_clear_line(word: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(None, word.split(" ") if word.startswith(("batch", "momentum")) else [word])
    assert said in str(caught.value)


def test_null_given_to_a_run_beats_the_file(tmp_path: Path) -> None:
    given = {
        "averaging": None,
        "base_lr": None,
        "seed_model": 3,
        "data_splits_map": {"test": None},
        "x": None,
    }
    words = restated([], given)
    assert words == ["averaging=null", "data_splits_map.test=null"]
    (tmp_path / "config.yaml").write_text(
        "averaging: poly_8\nbase_lr: 0.5\ndata_splits_map: {train: train, test: test}\n"
    )
    config = load(tmp_path / "config.yaml", words)
    assert (config.averaging, config.base_lr) == (None, 0.5)
    assert config.data_splits_map == {"train": "train", "test": None}


@pytest.mark.parametrize(
    "value", [[1, 2], [3], [], "1", "null", "a: b", "", "ü 😀", math.inf, True, [[1], ["a b"]]]
)
@pytest.mark.parametrize("style", ["flags", "equals"])
def test_map_entry_reaches_a_run_as_the_sweep_has_it(value: Any, style: str) -> None:
    given = {"model_options": {"act": value}}
    words = build(Job(name="x", command=("hostler",), style=style), given, {}, False).argv[1:]
    config = from_words((*words, *restated(words, given)))
    assert config.model_options == {"act": value} and type(config.model_options["act"]) is type(value)


def test_entry_that_the_command_takes_itself_is_not_set_twice() -> None:
    assert restated(["model_options.width=3"], {"model_options": {"size": 3}}) == []


def test_only_one_of_steps_and_samples_per_epoch() -> None:
    with pytest.raises(SpecError, match="one of the two"):
        Config(steps_per_epoch=3, samples_per_epoch=30)


def test_splits_map_in_a_text_is_parsed_and_never_evaluated() -> None:
    assert make({"data_splits_map": "{train: a, test: null}"}).data_splits_map == {"train": "a", "test": None}
    with pytest.raises(SpecError):
        make({"data_splits_map": "__import__('os').getcwd()"})


@pytest.mark.parametrize(
    "text",
    [
        "dict(train='train', val=\"train[:10%]\", test=None)",
        "{'train': 'train', 'val': 'train[:10%]', 'test': None}",
        "{train: train, val: 'train[:10%]', test: null}",
    ],
)
def test_splits_map_may_be_written_as_python_or_yaml(text: str) -> None:
    wanted = {"train": "train", "val": "train[:10%]", "test": None}
    assert make({"data_splits_map": text}).data_splits_map == wanted
    assert load(None, [f"data_splits_map={text}"]).data_splits_map == wanted


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["--base_lr", "1e-3"], "base_lr", 0.001),
        (["--base_lr=0.5"], "base_lr", 0.5),
        (["--augment", "flip", "crop_2", "--momentum", "0.9"], "augment", ("flip", "crop_2")),
        (["--momentum", "0.9,0.99", "optim_alg=adam"], "momentum", "0.9,0.99"),
        (["augment=flip,mixup"], "augment", ("flip", "mixup")),
        (["augment=[flip, mixup]"], "augment", ("flip", "mixup")),
        (["--augment"], "augment", ()),
        (["--model_input_shape", "3", "8", "8"], "model_input_shape", (3, 8, 8)),
        (["--compile", "false"], "compile", False),
        (["--deterministic"], "deterministic", True),
        (["--averaging", "null"], "averaging", None),
        (["best_checkpoint_metric=.*/loss"], "best_checkpoint_metric", ".*/loss"),
        (["wandb_run_name=007"], "wandb_run_name", "007"),
        (
            ["--data_splits_map.train", "a", "--data_splits_map.val", "null"],
            "data_splits_map",
            {"train": "a", "val": None},
        ),
        (["--weight_decay", "0", "batch_size=5"], "batch_size", 5),
        (
            ["--model_options.a", "1", "model_options.b=null", "base_lr=0.1"],
            "model_options",
            {"a": 1, "b": None},
        ),
        (["--best_checkpoint_metric", "loss"], "best_checkpoint_metric", "loss"),
        (["--wandb_tags", "loss", "amp", "batch_size=5"], "wandb_tags", ("loss", "amp")),
        (["--max_allowed_loss", "inf"], "max_allowed_loss", math.inf),
        (["--clip_grad_norm", "inf"], "clip_grad_norm", math.inf),
        (["--wandb_run_name", "inf"], "wandb_run_name", "inf"),
    ],
)
def test_words_are_read_as_people_and_as_workers_write_them(words: list[str], key: str, value: Any) -> None:
    assert getattr(from_words(words), key) == value


def test_the_file_comes_first_and_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("batch_size: 10\n")
    assert from_words([str(tmp_path / "config.yaml"), "--base_lr", "2"]).batch_size == 10
    assert from_words([]).batch_size == 100


def test_old_runs_config_is_a_file_despite_an_equals_sign(tmp_path: Path) -> None:
    old = tmp_path / "3_grid+base_lr=0.1"
    old.mkdir()
    (old / "config.yaml").write_text("batch_size: 10\n")
    assert from_words([str(old / "config.yaml"), "base_lr=2"]).batch_size == 10


def test_config_that_another_run_wrote_back_is_a_config() -> None:
    filled = {"data_n_examples": {"train": 10, "test": 5}, "host_name": "tau", "batch_size_accum": 50}
    assert make(filled).data_n_examples == {"train": 10, "test": 5}


def test_what_would_have_no_effect_is_said() -> None:
    with pytest.raises(SpecError, match="label_smoothing has no effect on loss: mse"):
        make({"loss": "mse", "label_smoothing": 0.1})


def test_whole_numbers_are_rates_too() -> None:
    assert make({"base_lr": 1}).base_lr == 1.0


@pytest.mark.parametrize(
    "given",
    [
        {},
        {
            "wandb_tags": ["a", "b"],
            "momentum": "0.9,0.99",
            "optim_alg": "adam",
            "model_input_shape": [3, 8, 8],
        },
        {"max_allowed_loss": float("inf")},
    ],
)
def test_what_is_written_back_reads_as_the_same(given: dict[str, Any]) -> None:
    config = make(given)
    text = dump(config)
    again = make(yaml12.load(text, "config.yaml").value)
    assert again == config
    assert list(yaml12.load(text, "c").value) == list(KEYS)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="No such file"):
        load(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b'wandb_run_name: "\xe9"\n')
    with pytest.raises(SpecError, match=r"latin\.yaml: a config is text \(it should be UTF-8\)"):
        load(path)


def test_wandb_can_be_requested_with_project_name_and_tags() -> None:
    asked = make({"wandb": True, "wandb_project_name": "digits", "wandb_tags": ["a"]})
    assert (asked.wandb, asked.wandb_project_name, asked.wandb_tags) == (True, "digits", ("a",))
    (shown,) = tracking_words.parse(trackers_of(asked))
    assert (shown.kind, shown.options) == ("wandb", {"project": "digits"})


def test_options_of_a_model_are_a_map_or_dotted_words(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model_options: {n_layer: 2, vision_cfg: {width: 32}}\n")
    words = ["model_options.n_layer=3", "model_options.vision_cfg.layers=4", "--model_options.act=relu"]
    found = load(tmp_path / "c.yaml", words).model_options
    assert found == {"n_layer": 3, "vision_cfg": {"width": 32, "layers": 4}, "act": "relu"}
    assert make({"model_options": "{n_layer: 2}"}).model_options == {"n_layer": 2}
    with pytest.raises(SpecError, match="model_options"):
        make({"model_options": 3})


def test_what_a_word_says_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("batch_size: 10\n")
    with pytest.raises(SpecError, match=r"^optim_alg"):
        load(tmp_path / "c.yaml", ["optim_alg=nope"])
    (tmp_path / "c.yaml").write_text("optim_alg: nope\n")
    with pytest.raises(SpecError, match=r"c.yaml: optim_alg"):
        load(tmp_path / "c.yaml", ["batch_size=10"])
    assert load(tmp_path / "c.yaml", ["optim_alg=adam"]).optim_alg == "adam"
