"""Trainings carried out together from their configs to their last rows, as a generator."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from hostler.train import early
from hostler.train.config import Config
from hostler.train.fused.group import Group
from hostler.train.seeds import SEEDS

Row = dict[str, float]


@dataclass
class FusedMember:
    """A training of the group: its results so far, and how it ended."""

    config: Config
    points: dict[int, float] = field(default_factory=dict)  # step → train/step_loss
    rows: list[Row] = field(default_factory=list)
    end: str = ""  # "done", "stopped early", "diverged"; "": it goes on
    why: str = ""
    weights: dict[str, torch.Tensor] = field(default_factory=dict)  # at its end
    average: dict[str, torch.Tensor] = field(default_factory=dict)  # of them, if it keeps one


def together(configs: Sequence[Config], device: torch.device) -> Iterator[list[FusedMember]]:
    """All members after each epoch, the last time with every end known. A member that leaves keeps the rows
    that it has; the others are not disturbed."""
    group = Group(_seeded(configs), device)
    group.rehearse()
    members = [FusedMember(config) for config in group.configs]
    for epoch in range(group.span.epochs):
        _epoch(group, members, epoch)
        if epoch + 1 == group.span.epochs:
            _end(group, members, list(group.members), "done")
        yield members
        if not group.members:
            return


def _seeded(configs: Sequence[Config]) -> list[Config]:
    """Seeds that nobody gave are drawn once, for all of them."""
    drawn = {name: secrets.randbelow(2**31) for name in SEEDS}
    return [
        config.but(**{n: seed for n, seed in drawn.items() if getattr(config, n) is None})
        for config in configs
    ]


def _epoch(group: Group, members: list[FusedMember], epoch: int) -> None:
    for results in group.stretch(group.span.first(epoch), group.span.steps(epoch)):
        member = members[results.member]
        if not member.why:  # nothing counts after the step at which it ran away
            member.points.update(results.points)
            member.why = results.diverged
    _end(group, members, [number for number in group.members if members[number].why], "diverged")
    if not group.members:
        return
    for place, row in group.rows(epoch).items():
        members[place].rows.append(row)
    _end(group, members, [number for number in group.members if _ran_out(members[number])], "stopped early")


def _end(group: Group, members: list[FusedMember], gone: list[int], end: str) -> None:
    for number in gone:
        members[number].end = end
        state = group.state(number)
        members[number].weights, members[number].average = state["model"], state.get("average", {})
    if gone:
        group.leave(*gone)


def _ran_out(member: FusedMember) -> bool:
    config = member.config
    if config.early_stopping_patience is None:
        return False
    columns = list(member.rows[-1])
    watched = early.watched(columns, config.best_checkpoint_metric, config.best_checkpoint_goal)
    return watched.ran_out(member.rows, config.early_stopping_patience)
