"""Prices and caps in files: what cannot be is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.backends.project_file import parse_project, parse_sweep
from hostler.errors import SpecError
from hostler.spec.files.yaml12 import load
from hostler.spec.project import default_project


@pytest.mark.parametrize("key", ["price", "max_cost", "max_hours"])
@pytest.mark.parametrize("value", ["-1", ".nan", ".inf", "-.inf", "many", "[1]", "true"])
def test_no_amount_of_money_or_time_is_refused(key: str, value: str) -> None:
    text = f"fleets:\n  a:\n    backend: local\n    {key}: {value}\n"
    with pytest.raises(SpecError, match=rf"hostler\.yaml:4: fleets\.a\.{key}"):
        parse_project(load(text, "hostler.yaml"), Path("/p"))


@pytest.mark.parametrize("key", ["max_cost", "max_hours"])
def test_a_cap_of_nothing_is_refused(key: str) -> None:
    with pytest.raises(SpecError, match="must be more than 0"):
        parse_project(load(f"fleets: {{a: {{backend: local, {key}: 0}}}}", "hostler.yaml"), Path("/p"))


def test_a_machine_may_cost_nothing() -> None:
    found = parse_project(load("fleets: {a: {backend: local, price: 0}}", "hostler.yaml"), Path("/p"))
    assert found.fleets["a"].price == 0


@pytest.mark.parametrize("value", ["0", "-1", ".nan", ".inf", "lots"])
def test_a_budget_that_is_no_amount_is_refused(value: str) -> None:
    text = f"command: x\nparameters: {{a: 1}}\nbudget: {{cost: {value}}}\n"
    with pytest.raises(SpecError, match=r"s\.yaml:3: budget\.cost"):
        parse_sweep(load(text, "s.yaml"), default_project(Path("/p")), Path("/p/s.yaml"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("cpus", word) for word in ("0", "many", "8-", "true")),
        *(("memory", word) for word in ("lots", "8", "-1GB+")),
        *(("gpu", word) for word in ("[]", "[T4:0]", "[1]")),
    ],
)
def test_wish_that_is_not_one_is_refused(key: str, value: str) -> None:
    text = f"fleets:\n  a:\n    backend: gce\n    {key}: {value}\n"
    with pytest.raises(SpecError, match=rf"hostler\.yaml:4: fleets\.a\.{key}"):
        parse_project(load(text, "hostler.yaml"), Path("/p"))


def test_wishes_are_kept_as_they_are_written() -> None:
    text = "fleets: {a: {backend: gce, zones: us, gpu: [L4:1, T4], cpus: 8+, memory: 32GB+, machine: any}}"
    found = parse_project(load(text, "hostler.yaml"), Path("/p")).fleets["a"].options
    assert (found["zones"], found["gpu"]) == (("us",), ("L4:1", "T4"))
    assert (found["cpus"], found["memory"], found["machine"]) == ("8+", "32GB+", "any")
    one = parse_project(load("fleets: {a: {backend: gce, gpu: T4:1, cpus: 8}}", "hostler.yaml"), Path("/p"))
    assert (one.fleets["a"].options["gpu"], one.fleets["a"].options["cpus"]) == ("T4:1", "8")
