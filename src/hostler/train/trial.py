"""One batch of each split through all that the long run will do with it, before the long run.

Nothing of it stays: weights, buffers and random numbers are as before.
"""

from __future__ import annotations

from hostler.train.evaluation import evaluated
from hostler.train.memory import Moment
from hostler.train.parts import Parts


def rehearse(parts: Parts) -> None:
    """What cannot work fails now. Ranks agree in how many pieces a batch goes through."""
    before = Moment(parts.model)
    parts.model.train()
    parts.step.rehearse(*parts.batch(0))
    evaluated(parts, batches=1)
    pieces = parts.step.pieces
    pieces.training = parts.ranks.most(pieces.training)
    pieces.evaluating = parts.ranks.most(pieces.evaluating)
    before.put_back()
