from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.backends.project_file import parse_project
from hostler.errors import SpecError
from hostler.spec.files.tracking_words import at, parse
from hostler.spec.files.yaml12 import load
from hostler.spec.tracking import Tracking, from_json

TB, WANDB = Tracking("tensorboard"), Tracking("wandb", {"project": "p"})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("tensorboard", (TB,)),
        (["tensorboard"], (TB,)),
        (["tensorboard", {"wandb": {"project": "p"}}], (TB, WANDB)),
        ({"tensorboard": None, "wandb": {"project": "p"}}, (TB, WANDB)),
        ([], ()),
    ],
)
def test_every_way_to_write_it_means_the_same(written: Any, meant: tuple[Tracking, ...]) -> None:
    assert parse(written) == meant


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("wandbb", "no tracker named 'wandbb' \\(did you mean 'wandb'\\?\\)"),
        (7, "7 is not a tracker: tensorboard, wandb, mlflow, comet, trackio"),
        ({"wandb": {"projct": "p"}}, "wandb has no option 'projct' \\(did you mean 'project'\\?\\)"),
        ({"wandb": {"mode": "of"}}, "wandb: mode is online or offline, not 'of'"),
        ({"wandb": {"project": 3}}, "wandb: project must be a text"),
        ({"wandb": "p"}, "wandb: 'p' is not a table of options"),
        (["wandb", "wandb"], "wandb is named twice"),
        ({"wandb": {"api_key": "x"}}, "keys come from the environment"),
        ({"comet": {"token": "x"}}, "keys come from the environment"),
        ({"mlflow": {"uri": "https://me:secret@host/"}}, "a uri with a password is a secret"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(written: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(written)


def test_places_are_seen_from_the_projects_folder() -> None:
    asked = parse(
        {"tensorboard": {"dir": "boards"}, "mlflow": {"uri": "sqlite:///m.db"}, "wandb": {"project": "a/b"}}
    )
    found = {one.kind: dict(one.options) for one in at(asked, Path("/home/me"))}
    assert found == {
        "tensorboard": {"dir": "/home/me/boards"},
        "mlflow": {"uri": "sqlite:////home/me/m.db"},
        "wandb": {"project": "a/b"},
    }
    for uri in ("http://host:5000", "sqlite:////x/m.db", "file:///x/mlruns", "databricks"):
        assert at(parse({"mlflow": {"uri": uri}}), Path("/p"))[0].options["uri"] == uri
    assert at(parse({"mlflow": {"uri": "mlruns"}}), Path("/p"))[0].options["uri"] == "/p/mlruns"


def test_records_of_names_alone_are_read() -> None:
    assert from_json(["tensorboard", {"kind": "wandb", "options": {"project": "p"}}]) == (TB, WANDB)


def test_a_mistake_in_the_file_names_its_line() -> None:
    with pytest.raises(SpecError, match=r"hostler.yaml:2.*no tracker named 'tensorbord'"):
        parse_project(load("name: x\ntrackers: [tensorbord]\n", "hostler.yaml"), Path("/p"))
