"""What the trainer says of a sweep before it is submitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.backends.project_file import parse_sweep
from hostler.errors import SpecError
from hostler.fleet.sweep import draft_sweep
from hostler.spec.files.parse import read_document
from hostler.spec.files.sweepfile import SweepFile
from hostler.spec.job import Job
from hostler.spec.project import default_project
from hostler.spec.together import limit_of
from hostler.train import copied
from hostler.train.fused import offer
from hostler.train.fused.offer import offered

RATES = "{base_lr: [0.1, 0.2], seed_model: [1, 2]}"


def sweep(
    folder: Path, parameters: str, more: str = "", config: str = "dataset: sklearn/digits\n"
) -> SweepFile:
    (folder / "config.yaml").write_text(config)
    path = folder / "sweep.yaml"
    command = "" if "command:" in more else "command: hostler train config.yaml\n"
    path.write_text(f"{command}metric: test/last/loss\ngoal: min\nparameters: {parameters}\n{more}")
    return parse_sweep(read_document(path), default_project(folder), path)


def said(folder: Path, *given: Any, **named: Any) -> tuple[Job, str]:
    file = sweep(folder, *given, **named)
    return offered(draft_sweep(file), file.project.root, file.together)


def test_runs_that_differ_only_in_numbers_go_together(tmp_path: Path) -> None:
    job, text = said(tmp_path, RATES)
    assert job.together.limit == 128 and limit_of(job, 0) == 128
    assert text.startswith("trained together on one device: 4 of 4 runs, up to 128 at once")
    assert "they differ in base_lr, seed_model" in text and "together: false" in text


def test_parameter_that_changes_shapes_is_named_and_runs_go_singly(tmp_path: Path) -> None:
    job, text = said(tmp_path, "{batch_size: [10, 100]}")
    assert job.together.limit == 1
    assert text == "trained one by one: batch_size changes shapes, data or steps"


def test_of_a_grid_with_shapes_each_shape_is_a_group(tmp_path: Path) -> None:
    job, text = said(tmp_path, "{batch_size: [10, 100], base_lr: [0.1, 0.2]}")
    assert limit_of(job, 0) == 128 and "4 of 4 runs in 2 groups" in text
    assert "batch_size changes shapes, data or steps" in text


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("loss: mine.py:loss\n", "loss: mine.py:loss is a user's"),
        ("optim_alg: mine.py:Own\n", "optim_alg: mine.py:Own is a user's"),
        ("train_length: 0\n", "nothing is trained"),
    ],
)
def test_what_the_config_forbids_is_the_reason(tmp_path: Path, config: str, why: str) -> None:
    job, text = said(tmp_path, RATES, config=config)
    assert job.together.limit == 1 and text.startswith("trained one by one: ") and why in text


@pytest.mark.parametrize(
    "config",
    [
        "augment: [flip, crop, randaugment, mixup, cutmix]\n",
        "amp: fp16\n",
        "amp: bf16\nchannels_last: true\n",
        "model: tiny/wrn_16_4_0.3\n",
        "grad_accum_steps: 4\noptim_alg: adamw\nearly_stopping_patience: 2\n",
    ],
)
def test_grids_of_usual_picture_trainings_go_together(tmp_path: Path, config: str) -> None:
    grid = "{base_lr: [0.1, 0.2], weight_decay: [0, 0.01], label_smoothing: [0, 0.1]}"
    job, text = said(tmp_path, grid, config=config)
    assert limit_of(job, 0) == 128 and "8 of 8 runs" in text


def test_runs_on_several_gpus_each_do_not_share_a_process(tmp_path: Path) -> None:
    job, text = said(tmp_path, RATES, "resources: {gpus: 2}\n")
    assert job.together.limit == 1 and text == "trained one by one: multi_gpu: each trains on 2 GPUs"
    for more, config in (("resources: {gpus: 1}\n", ""), ("resources: {gpus: 2}\n", "multi_gpu: false\n")):
        job, text = said(tmp_path, RATES, more, config=f"dataset: sklearn/digits\n{config}")
        assert job.together.limit == 128 and "4 of 4 runs" in text


def test_of_some_that_cannot_the_others_still_go_together(tmp_path: Path) -> None:
    job, text = said(tmp_path, "{base_lr: [0.1, 0.2], optim_alg: [sgd, 'mine.py:Own']}")
    limits = [limit_of(job, index) for index in range(4)]
    assert sorted(limits) == [1, 1, 128, 128]
    assert "2 of 4 runs" in text and "one by one: optim_alg: mine.py:Own" in text


def test_averages_of_the_weights_are_among_the_numbers(tmp_path: Path) -> None:
    job, text = said(tmp_path, "{base_lr: [0.1, 0.2], averaging: [null, ema_0.9, poly_8]}")
    assert limit_of(job, 0) == 128 and "6 of 6 runs, up to" in text
    assert "they differ in base_lr, averaging" in text


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("{base_lr: [0.1, .nan]}", "run 1: base_lr: 'nan' is not a number"),
        ("{base_lr: [0.1, nan]}", "run 1: base_lr: 'nan' is not a number"),
        ("{base_lr: [0.1, 0.2], momentum: [0.9, abc]}", "run 1: momentum 'abc' is not a number"),
        ("{base_lr: [0.1, 0.2], seed_model: [1, 1.5]}", "run 1: seed_model: 1.5 is not a whole number"),
        ("{base_lr: [0.1, 0.2], averaging: [poly_8, polly]}", "run 1: no averaging named 'polly'"),
        ("{base_lr: [0.1, 0.2], lr_schedule: [constant, cosin]}", "run 1: no lr_schedule named 'cosin'"),
        ("{base_lr: [0.1, 0.2], lr_schedule: [constant, poly_nan]}", "run 1: lr_schedule 'poly_nan'"),
        ("{base_rl: [0.1, 0.2]}", "no key named 'base_rl'"),
        ("{batch_size: [1, 1.0e+17]}", "run 1: batch_size is 100000000000000000, but must be below"),
    ],
)
@pytest.mark.parametrize("more", ["", "together: false\n"])
def test_a_value_that_cannot_be_is_refused_before_anything_runs(
    tmp_path: Path, parameters: str, why: str, more: str
) -> None:
    with pytest.raises(SpecError) as caught:
        said(tmp_path, parameters, more)
    assert why in str(caught.value)


def test_runs_own_settings_may_differ_in_a_group(tmp_path: Path) -> None:
    names = "{base_lr: [0.1, 0.2], wandb_run_name: '{run_id}', wandb_tags: [[a], [b]], save_freq: [0, 1]}"
    job, text = said(tmp_path, names)
    assert limit_of(job, 0) == 128 and "8 of 8 runs, up to" in text


def test_the_file_may_say_how_many_or_none(tmp_path: Path) -> None:
    assert said(tmp_path, RATES, "together: 3\n")[0].together.limit == 3
    assert said(tmp_path, RATES, "together: true\n")[0].together.limit == 128
    job, text = said(tmp_path, RATES, "together: false\n")
    assert job.together.limit == 1 and text == "trained one by one: together is off"


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "x"])
def test_number_that_none_can_share_is_refused_in_plain_words(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(SpecError, match=r"together: .* is not true, false or how many"):
        said(tmp_path, RATES, f"together: {wrong}\n")


def test_of_other_commands_nothing_is_said(tmp_path: Path) -> None:
    job, text = said(tmp_path, RATES, "command: python train.py\n")
    assert job.together.limit == 1 and text == ""
    with pytest.raises(SpecError, match="together: 4, but the command is not hostler train"):
        said(tmp_path, RATES, "command: python train.py\ntogether: 4\n")


def test_a_search_that_learns_goes_together_only_if_asked(tmp_path: Path) -> None:
    space, more = "{base_lr: {min: 0.01, max: 1.0}}", "method: tpe\nbudget: {runs: 8}\n"
    job, text = said(tmp_path, space, more)
    assert job.together.limit == 1 and "a search learns from each run" in text
    job, text = said(tmp_path, space, f"{more}together: 4\n")
    assert job.together.limit == 4 and job.together.asked and "4 configurations are asked for" in text
    _, text = said(
        tmp_path, "{base_lr: {min: 0.01, max: 1.0}, optim_alg: [sgd, adam]}", f"{more}together: 4\n"
    )
    assert text == "trained one by one: the search sets optim_alg"


def test_a_config_that_cannot_be_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"config.yaml:1.*no_such_key"):
        said(tmp_path, RATES, config="no_such_key: 1\n")


def test_absent_config_is_reported_as_possibly_present_elsewhere(tmp_path: Path) -> None:
    _, text = said(tmp_path, RATES, "command: hostler train another.yaml\n")
    assert text.startswith("trained one by one: ") and "another.yaml" in text


@pytest.mark.parametrize("words", ["config.yaml --name mine", "--name=mine config.yaml", "-- config.yaml"])
def test_options_of_the_command_are_no_keys_of_the_config(tmp_path: Path, words: str) -> None:
    job, text = said(tmp_path, RATES, f"command: hostler train {words}\n")
    assert limit_of(job, 0) == 128 and "4 of 4 runs" in text


@pytest.mark.parametrize(
    "parameters",
    ["{max_allowed_loss: [.inf, 1e6]}", "{best_checkpoint_metric: [loss, test/last/loss]}"],
)
def test_values_that_look_odd_as_words_are_not_refused(tmp_path: Path, parameters: str) -> None:
    assert "2 of 2 runs" in said(tmp_path, parameters)[1]


def test_the_place_of_a_mistake_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        said(tmp_path, RATES, config="- a\n")
    assert str(caught.value).count("config.yaml:1: ") == 1


def test_config_is_the_projects_wherever_the_sweep_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    Path("another.yaml").write_text("no_such_key: 1\n")
    _, text = said(tmp_path, RATES, "command: hostler train another.yaml\n")
    assert text.startswith("trained one by one: ") and "another.yaml" in text


LEARNS = "method: tpe\nbudget: {runs: 8}\n"


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("{lr: {log_uniform: [1e-3, 1]}}", "no key named 'lr' (it is called base_lr here)"),
        ("{base_lr: {log_uniform: [1e-3, 1]}, model_option: {n_layer: 2}}", "'model_option.n_layer'"),
    ],
)
def test_search_over_an_unknown_key_is_refused_before_any_run(
    tmp_path: Path, parameters: str, why: str
) -> None:
    with pytest.raises(SpecError) as caught:
        said(tmp_path, parameters, LEARNS)
    assert why in str(caught.value)


def test_search_may_set_map_entries_and_options_of_the_command(tmp_path: Path) -> None:
    parameters = """
  rate: {log_uniform: [1e-3, 1]}
  evaluate: av
  averaging: [ema_0.9, poly_8]
  model_options: {n_layer: [1, 2]}
"""
    command = "command: hostler train config.yaml base_lr={rate}\n"
    assert "a search learns" in said(tmp_path, parameters, LEARNS + command)[1]


def test_values_of_a_gang_are_looked_at_too(tmp_path: Path) -> None:
    gang = "resources: {procs_per_node: 2}\n"
    assert said(tmp_path, RATES, gang)[1] == ""
    with pytest.raises(SpecError, match="run 1: optim_alg: 'sdg' is not one of"):
        said(tmp_path, "{optim_alg: [sgd, sdg]}", gang)


@pytest.mark.parametrize(
    "parameter",
    ["model_pretrained: {best-of: before, file: model.safetensors}", "data_dir: [{run: a/0}, {run: a/1}]"],
)
def test_what_other_runs_left_is_a_path_like_any_other(tmp_path: Path, parameter: str) -> None:
    job, _ = said(tmp_path, f"{{{parameter}, base_lr: [0.1, 0.2]}}")
    assert limit_of(job, 0) == 128


@pytest.mark.parametrize("path", ["old/lr=0.1/config.yaml", "{data_dir}/lr=0.1/config.yaml"])
def test_config_of_an_old_run_elsewhere_is_not_a_key(tmp_path: Path, path: str) -> None:
    _, text = said(tmp_path, RATES, f"command: [hostler, train, '{path}']\n")
    assert text.startswith("trained one by one: ") and "No such file" in text


def test_only_the_first_of_too_many_runs_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offer, "MOST", 3)
    assert "3 of the first 3 runs" in said(tmp_path, RATES)[1]


COPY = "command: python train.py config.yaml\n"


def copy(folder: Path) -> None:
    for path, text in copied.texts("mine").items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def test_copy_of_the_trainer_goes_together_as_the_original_does(tmp_path: Path) -> None:
    copy(tmp_path)
    job, text = said(tmp_path, RATES, COPY)
    assert limit_of(job, 0) == 128 and "4 of 4 runs" in text
    with pytest.raises(SpecError, match="run 1: base_lr is -1"):
        said(tmp_path, "{base_lr: [0.1, -1]}", COPY)


@pytest.mark.parametrize("path", ["train.py", "trainer/step.py", "trainer/data/feed.py"])
def test_changed_file_that_a_group_passes_by_is_named(tmp_path: Path, path: str) -> None:
    copy(tmp_path)
    (tmp_path / path).write_text((tmp_path / path).read_text() + "# mine\n")
    job, text = said(tmp_path, RATES, COPY)
    assert job.together.limit == 1
    assert text == (
        f"trained one by one: {path} differs from hostler's, and runs that share a process pass it by"
    )
    with pytest.raises(SpecError, match=f"together: 4, but {path} differs"):
        said(tmp_path, RATES, f"{COPY}together: 4\n")


def test_changed_file_that_a_group_uses_does_not_part_it(tmp_path: Path) -> None:
    copy(tmp_path)
    for path in ("my.py", "trainer/models/linear.py", "trainer/schedule.py"):
        (tmp_path / path).write_text("mine = 1\n")
    job, text = said(tmp_path, RATES, COPY)
    assert limit_of(job, 0) == 128 and "4 of 4 runs" in text


def test_key_that_a_user_has_added_is_left_to_the_process(tmp_path: Path) -> None:
    copy(tmp_path)
    (tmp_path / "trainer" / "config.py").write_text("mine = 1\n")
    job, text = said(tmp_path, "{base_lr: [0.1, 0.2], mine: [1, 2]}", COPY)
    assert "4 of 4 runs in 2 groups" in text and limit_of(job, 0) == 128


def test_script_that_is_not_a_copy_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    job, text = said(tmp_path, RATES, COPY)
    assert job.together.limit == 1 and text == ""


def test_files_that_a_group_passes_by_are_the_trainers() -> None:
    known = copied.texts("mine")
    assert not [path for path in (*copied.BYPASSED, *copied.CONFIG) if path not in known]
