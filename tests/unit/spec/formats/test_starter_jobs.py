"""experiment-starter's job files: texts for lists, the tracker, mistakes with their line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.project_file import load_sweep
from hostler.errors import SpecError
from hostler.spec.files.yaml12 import load
from hostler.spec.formats import starter
from hostler.spec.formats.foreign import Foreign
from hostler.spec.project import default_project
from hostler.spec.space import parse

# The shapes of the four files that come with it: two grids of 108, one of 54 with a tracker, one of 4.
LINEAR = """\
job_details:
  name: {name}
  output_dir: results
{details}
parameters:
  log_interval: [10]
  eval_batch_size: [10000]
  dataset: ['libsvm/covtype.multiclass']
  data_splits_map: ['dict(train="train", traineval="train")']
  model: ['linear']
  batch_size: {batches}
  LIST_OF_RATES:
    - base_lr: '[float(x) for x in 2.0 ** np.arange({first}, {last})]'
      momentum: [0.0]
    - base_lr: '[float(x)/10 for x in 2.0 ** np.arange({first}, {last})]'
      momentum: [0.9]
  samples_per_epoch: [81920]
  averaging: ['poly_8']
"""
PICTURES = """\
job_details:
  name: pictures
  output_dir: results
parameters:
  dataset: ['timm/tfds/cifar10']
  data_splits_map: ['dict(train="train[:90%]", val="train[90%:]", test="test")']
  LIST_OF_MODELS:
    - model: ['tiny/lenet', 'tiny/wrn_10_2']
      model_pretrained: [false]
    - model: ['timm/mobilenetv3_small_100']
      model_pretrained: [false, true]
  momentum: ['0.9,0.99']
  base_lr: [1.0e-03]
  averaging: [null]
"""
MANY = [8, 32, 128, 512, 2048, 8192]
TRACKED = "  wandb: true\n  wandb_project_name: 'linear'"


def read(text: str) -> Foreign:
    return starter.read(load(text, "job.yaml"), "stem")


def by_hand(batches: list[int], first: int, last: int) -> list[dict[str, Any]]:
    """The cells of a linear grid, written as loops."""
    rates = [(2.0**n, 0.0) for n in range(first, last)] + [(2.0**n / 10, 0.9) for n in range(first, last)]
    same = {
        "log_interval": 10,
        "eval_batch_size": 10000,
        "dataset": "libsvm/covtype.multiclass",
        "data_splits_map": 'dict(train="train", traineval="train")',
        "model": "linear",
        "samples_per_epoch": 81920,
        "averaging": "poly_8",
    }
    return [
        {**same, "batch_size": batch, "base_lr": rate, "momentum": momentum}
        for batch, (rate, momentum) in itertools.product(batches, rates)
    ]


def cells(found: Foreign) -> set[str]:
    return {json.dumps(cell, sort_keys=True) for cell in parse(found.sweep["parameters"]).cells()}


@pytest.mark.parametrize(
    ("batches", "first", "last", "details", "runs"),
    [(MANY, -6, 3, "", 108), (MANY, -3, 6, "", 108), (MANY[3:], -6, 3, TRACKED, 54)],
)
def test_linear_grids_equal_the_list_by_hand(
    batches: list[int], first: int, last: int, details: str, runs: int
) -> None:
    text = LINEAR.format(name="linear", batches=batches, first=first, last=last, details=details)
    found = read(text)
    expected = {json.dumps(cell, sort_keys=True) for cell in by_hand(batches, first, last)}
    assert (found.runs, len(expected)) == (runs, runs)
    assert cells(found) == expected


def test_grid_of_pictures_has_four_runs() -> None:
    found = read(PICTURES)
    chosen = [(c["model"], c["model_pretrained"]) for c in parse(found.sweep["parameters"]).cells()]
    assert found.runs == 4
    assert sorted(chosen) == [
        ("timm/mobilenetv3_small_100", False),
        ("timm/mobilenetv3_small_100", True),
        ("tiny/lenet", False),
        ("tiny/wrn_10_2", False),
    ]
    assert {c["momentum"] for c in parse(found.sweep["parameters"]).cells()} == {"0.9,0.99"}


def test_wandb_of_the_details_is_the_tracker(tmp_path: Path) -> None:
    text = LINEAR.format(name="linear", batches=MANY, first=-6, last=3, details=TRACKED)
    assert not [note for note in read(text).notes if "wandb" in note]
    (tmp_path / "job.yaml").write_text(text)
    tracked = load_sweep(tmp_path / "job.yaml", default_project(tmp_path), commanded=False).project.trackers
    assert [(one.kind, dict(one.options)) for one in tracked] == [("wandb", {"project": "linear"})]


def test_wandb_false_is_no_tracker() -> None:
    details = "  wandb: false\n  wandb_project_name: 'linear'"
    text = LINEAR.format(name="linear", batches=MANY, first=-6, last=3, details=details)
    assert "trackers" not in read(text).sweep


def test_text_that_holds_a_dict_stays_text() -> None:
    text = "job_details: {name: x}\nparameters:\n  data_splits_map: 'dict(train=\"train\")'\n  a: [1, 2]\n"
    assert read(text).sweep["parameters"]["data_splits_map"] == 'dict(train="train")'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lr: '[float(x) for x in'", "job.yaml:4: lr: .*at column"),
        ("lr: \"__import__('os')\"", "job.yaml:4: lr: no function named __import__.*at column 1"),
        ("lr: 10**10**10", "job.yaml:4: lr: too large a number, at column 1"),
        (
            "lr: '[x for x in range(10**9)]'",
            "job.yaml:4: lr: a range of more than 10,000 values, at column 13",
        ),
        ("LIST: [{lr: '[1, oops]'}]", "job.yaml:4: lr: nothing is named oops, at column 5"),
        ("lr: '[x for x in range(0)]'", "job.yaml:4: lr: .* has no values"),
    ],
)
def test_text_that_cannot_be_read_names_line_and_column(line: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read(f"job_details: {{name: x}}\nparameters:\n  a: [1]\n  {line}\n")
