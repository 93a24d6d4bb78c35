"""The tool that a task belongs to, and the task as a command and a fleet. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hostler.spec.formats import startup
from hostler.spec.formats.machines import Machines
from hostler.spec.formats.tasks import compose, dstack, kubeflow, skypilot, wandb_launch
from hostler.spec.formats.tasks.carried import looks_secret


def is_it(value: Any) -> bool:
    return isinstance(value, Mapping) and any(test(value) for test, _ in READERS)


def read(value: Mapping[str, Any], where: str) -> Machines:
    """SpecError for one that trains nothing."""
    reader = next(reader for test, reader in READERS if test(value))
    made = reader(value, where)
    return replace(made, hides_itself=_holds_secrets(value))


def _holds_secrets(given: Any, name: str = "") -> bool:
    """Whether a value that nobody else should know stands in the file."""
    if isinstance(given, Mapping):
        pair = isinstance(given.get("name"), str) and looks_secret(given["name"], given.get("value"))
        return pair or any(_holds_secrets(value, str(key)) for key, value in given.items())
    if isinstance(given, list):
        return any(_holds_secrets(one, name) for one in given)
    return isinstance(given, str) and (looks_secret(name, given) or startup.holds_secrets(given))


_Given = Mapping[str, Any]
READERS: tuple[tuple[Callable[[_Given], bool], Callable[[_Given, str], Machines]], ...] = (
    (lambda given: given.get("kind") in ("PyTorchJob", "TrainJob"), kubeflow.read),
    (lambda given: given.get("type") == "task" and "commands" in given, dstack.read),
    (lambda given: isinstance(given.get("services"), Mapping) and "commands" not in given, compose.read),
    (lambda given: "overrides" in given and ("resource" in given or "job" in given), wandb_launch.read),
    (
        lambda given: (
            isinstance(given.get("run"), str)
            and any(key in given for key in ("resources", "setup", "num_nodes", "envs", "file_mounts"))
        ),
        skypilot.read,
    ),
)
