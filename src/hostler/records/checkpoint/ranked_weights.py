"""The weights that a run is ranked by: where they are among what the run saved, and in words."""

from __future__ import annotations

from typing import Any

from hostler.frozen import dataclass
from hostler.records.checkpoint import checkpoints, selection
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.selection import KeptCheckpoint
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.spec.ranking import BEST, Judged, judge
from hostler.store import Store


@dataclass(frozen=True)
class RankedWeights:
    """The value that a run is ranked by, and the checkpoint that has its weights."""

    metric: str
    judged: Judged
    kept: KeptCheckpoint | None  # None: the weights of that step are not kept
    newest: Place | None  # the newest checkpoint; None: the run has saved none

    @property
    def elsewhere(self) -> KeptCheckpoint | None:
        """The checkpoint that has them, where it is an older one than the newest."""
        older = self.judged.of == BEST and self.kept and self.kept.place != self.newest
        return self.kept if older else None

    @property
    def value(self) -> str:
        """The value, its kind and its step, as in `acc=0.913 (best, step 40)`."""
        return f"{self.metric}={self.judged.value:.6g} ({self.judged.shown})"

    @property
    def missing(self) -> str:
        """Why nobody gets them; empty if they are kept, or if the run has saved nothing at all."""
        if self.kept or not self.newest:
            return ""
        return f"the weights of {self.value} are not kept: the newest checkpoint is brought instead"

    @property
    def said(self) -> str:
        """Where they are in what was brought; empty where that is the newest checkpoint and all of it."""
        if self.kept is None:
            return self.missing
        if self.kept.inside:
            return f"the weights of {self.value} are `manager.best_weights` of the checkpoint"
        if self.kept.folder:
            return f"the weights of {self.value} are in checkpoint/{self.kept.folder}"
        return f"checkpoint {self.kept.place.name} has the weights of {self.value}" if self.elsewhere else ""

    @property
    def record(self) -> dict[str, Any]:
        """The same for programs."""
        place = {"checkpoint": self.kept.place.name, "folder": self.kept.folder} if self.kept else {}
        return {"metric": self.metric, **self.judged._asdict(), "kept": bool(place), **place}


def of_run(store: Store, key: RunKey) -> RankedWeights | None:
    """Ranked weights of a run by its sweep's metric; None if it has none, or has not ended with a value."""
    by = sweeps.load(store, key.sweep).ranked_by
    judged = judge(control.state_of(store, key).end or {}, by) if by else None
    return at_value(store, key, by.name, judged) if by and judged and judged.counts else None


def at_value(store: Store, key: RunKey, metric: str, judged: Judged) -> RankedWeights:
    """Weights of the value that a run has been ranked by."""
    newest = next(iter(checkpoints.committed(store, key.run)), None)
    return RankedWeights(metric, judged, selection.ranked(store, key, metric, judged), newest)
