"""Parses `save_every`: the times at which a script wants checkpoints."""

from __future__ import annotations

from hostler.errors import UsageError
from hostler.sdk.checkpoint.policy import SavePolicy
from hostler.spec.units import duration

KEPT = SavePolicy(
    every_steps=1 << 62, each_epoch=False, keep=2
)  # of a best one: saved when it is, and only then


def policy_of(every: float | str | None) -> SavePolicy:
    """The policy of `save_every`: seconds or '10m', '500 steps', 'epoch'; None is as often as pays."""
    if every is None:
        return SavePolicy()
    if every == "epoch":
        return SavePolicy(every_steps=1 << 62)
    words = every.split() if isinstance(every, str) else []
    if len(words) == 2 and words[0].isdigit() and words[1] in ("step", "steps") and int(words[0]) > 0:
        return SavePolicy(every_steps=int(words[0]), each_epoch=False)
    try:
        return SavePolicy(every_seconds=duration(every), each_epoch=False)
    except ValueError as error:
        raise UsageError(
            f"save_every={every!r}: {error}", hint="give 300, '5m', '500 steps' or 'epoch'"
        ) from None
