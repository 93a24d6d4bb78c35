"""A spec that would show a secret is refused before it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hostler.errors import UsageError
from hostler.fleet import secrecy
from hostler.spec.job import Job

JOB = Job(name="grid", command=("python", "train.py"), secrets=("TOKEN",))


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush-hush")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"command": ("python", "train.py", "--token=hush-hush")}, "`command`"),
        ({"setup": ("bash", "-c", "wandb login hush-hush")}, "`setup`"),
        ({"resume": ("--key", "hush-hush")}, "`resume`"),
        ({"env": {"OTHER": "x:hush-hush"}}, "`env`"),
        ({"runs": ({"lr": 1, "key": "hush-hush"},)}, "the parameters"),
        ({"runs": ({"nested": {"key": ["hush-hush"]}},)}, "the parameters"),
    ],
)
def test_a_value_in_a_spec_is_refused_with_its_place(change: dict[str, Any], where: str) -> None:
    with pytest.raises(UsageError) as error:
        secrecy.check(replace(JOB, **change))
    assert f"the value of TOKEN stands in {where}" in str(error.value) and "hush" not in str(error.value)


def test_a_name_under_env_is_no_secret_any_more() -> None:
    with pytest.raises(UsageError, match="TOKEN is under `env:` and a secret"):
        secrecy.check(replace(JOB, env={"TOKEN": "plain"}))
    with pytest.raises(UsageError, match="GIT is under `env:`"):
        secrecy.check(replace(JOB, env={"GIT": "plain"}), "GIT")


def test_names_and_short_values_may_stand_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    secrecy.check(replace(JOB, command=("bash", "-c", 'python train.py --token "$TOKEN"')))
    monkeypatch.setenv("TOKEN", "train")
    secrecy.check(JOB)
    monkeypatch.delenv("TOKEN")
    secrecy.check(replace(JOB, env={"A": ""}))
