"""Between which batches a checkpoint may be saved."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hostler.sdk.checkpoint.checkpointer import SafePoints


class Optimizer:
    """One that tells when it steps."""

    _optimizer_step_post_hooks: tuple[()] = ()

    def register_step_post_hook(self, hook: Callable[..., None]) -> SimpleNamespace:
        self.step = hook
        return SimpleNamespace(remove=lambda: None)


def test_step_of_the_last_epoch_makes_no_safe_point() -> None:
    reached, optimizer, loader = list[int](), Optimizer(), SimpleNamespace(name="loader", iteration=1)
    position: Any = loader
    points = SafePoints(lambda: reached.append(loader.iteration))
    points.watch(optimizer)
    points.epoch_began()
    points.begins(position)
    optimizer.step()  # after the last batch; a loader that draws ahead is not asked for another
    points.epoch_began()
    loader.iteration = 2
    points.begins(position)
    points.between(position)  # the first batch only gathered gradients
    assert reached == []
    optimizer.step()
    points.between(position)
    assert reached == [2]
