"""Everything one attempt sends to the store, from its claim to its end.

A run's program owns one: it restores, sends points and output while the run runs, keeps what the
process left, and closes the attempt. Outputs and checkpoint go before the entry that closes it, and of a
finished run the outputs before the checkpoint: whoever finds a finished checkpoint ends the run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostler import env, settings
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.records.body import Record
from hostler.records.run import handoff
from hostler.records.run.attempt import Attempt
from hostler.records.run.entries import Outcome
from hostler.records.run.handoff import Handoff
from hostler.records.run.state import RunState
from hostler.records.series import metrics
from hostler.records.series.metrics import Origin
from hostler.spec.ranking import HasGoal, averaged
from hostler.spec.states import DONE
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.attempt.saver import Saver
    from hostler.attempt.working_files import Look, Made
    from hostler.records.checkpoint.checkpoints import Checkpoint

_BEST = ("min", "min_step", "max", "max_step")  # of a metric's totals, for the heartbeat
HURRY = 1e8  # bytes of files in the working folder that a worker which has to go still keeps


class Delivery:
    def __init__(
        self,
        store: Store,
        attempt: Attempt,
        folder: Handoff,
        uploader: Uploader,
        status: AttemptStatus,
        state: RunState,
        outputs: Sequence[str] = (),
        objectives: Sequence[HasGoal] = (),
        *,
        bundled: bool = False,
    ) -> None:
        """`state` is the run's when it was claimed; `outputs` are paths in the working folder to keep besides
        the output folder, however large; `objectives` are what the run is ranked by. `bundled`: small files
        of a checkpoint, and those that it leaves, are one object each time."""
        self._objectives, self.bundled = objectives, bundled
        self.store, self.attempt, self.folder, self.state = store, attempt, folder, state
        self.uploader, self.status, self._outputs = uploader, status, outputs
        self.saver: Saver | None = None  # made by worker/run/running_process.py or script_saver.py
        self.restored: Checkpoint | None = None  # the checkpoint that the attempt goes on from
        self.rounds = 0  # of boosting, in a model of that checkpoint
        self.before: Look | None = None  # at the working folder; None: nothing is looked for there
        self.left: dict[str, Any] = {}  # for the entry that closes it: what it left, and what was not kept
        self._sent: dict[str, str] = {}

    def stop(self, reason: str) -> None:
        """A stop request, from wherever: the first one's reason holds."""
        self.status.ask(reason)

    def fence(self) -> None:
        """The run is another's by now."""
        self.status.fenced = True

    def facts(self) -> dict[str, Any]:
        """For the heartbeat: how far it is."""
        totals, last = self.uploader.totals, self.uploader.last_values()
        watched = {
            objective.name: totals[objective.name]
            for objective in self._objectives
            if objective.name in totals
        }
        best = {name: {part: row[part] for part in _BEST if part in row} for name, row in watched.items()}
        facts = {"attempt": self.attempt.number, "step": self.uploader.steps, "metrics": last}
        return facts | ({"best": best} if best else {}) | ({"kept": kept} if (kept := self.kept) else {})

    @property
    def result(self) -> Record:
        """For the checkpoint of a finished run: what its end says, should nobody live to write it."""
        facts = {"metrics": self.uploader.totals, "kept": self.kept, "why": self._early}
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def kept(self) -> dict[str, Any]:
        """metric → goal, value and step of the best state that the process keeps, as it says."""
        return kept_states(handoff.read(self.folder.best))

    def restore(
        self, say: Callable[[str], None], fits: Callable[[], bool] = lambda: True
    ) -> Checkpoint | None:
        """Bring the newest good checkpoint here that fits, and tell readers what the curves go on from."""
        from hostler.records.checkpoint import checkpoints  # a first attempt of a script by hand needs none

        state = self.state
        if state.attempts <= 1:  # its own: nobody has saved anything, and a list costs a request for each run
            return None
        checkpoint = self.restored = checkpoints.restore_newest(
            self.store,
            self.attempt.key.run,
            self.folder.checkpoint,
            skip=state.suspects,
            after=state.fresh_from,
            before=self.attempt.number,
            say=say,
            fits=fits,
        )
        if checkpoint:
            others = checkpoint.record.get("positions") or {}
            origin = Origin(checkpoint.place.attempt, checkpoint.place.step, checkpoint.position, others)
            from hostler.attempt.boosted_rounds import boosted_rounds

            self.rounds = boosted_rounds(self.folder.checkpoint)
            self.status.deliver(lambda: self.uploader.continue_from(origin, checkpoint.record, self.rounds))
        elif state.attempts > 1:
            self.status.deliver(self.uploader.start_over)
        return checkpoint

    def keep(
        self, *, trusted: bool, done: bool = False, result: Record | None = None, alive: float = 0.0
    ) -> None:
        """Keep what the process left. `trusted`: it left as it meant to, so that what it wrote is whole.
        `result` marks the checkpoint as that of a finished run. `alive`: when it is known to have lived."""
        steps = [lambda: self._save(trusted=trusted, result=result, alive=alive), self._keep_outputs]
        for step in reversed(steps) if done else steps:
            self.status.deliver(step)

    def filled(self, outcome: Outcome, seconds: float) -> Outcome:
        """The outcome with what is known of the run and of this attempt, which took so many seconds."""
        return replace(
            outcome,
            why=outcome.why or (self._early if outcome.state == DONE else None),
            kept=self.kept or None,
            restored=self.restored.place.name if self.restored else None,
            host=env.host(),
            attempts=self.state.attempts,
            started=self.state.first,
            metrics=self.uploader.totals,
            step=self.uploader.steps,
            seconds=round(seconds, 3),
            total=round(self.state.spent + seconds, 3),
        )

    def close(self, outcome: Outcome) -> None:
        """Bring the rest of points and output into the store, then the entry that closes the attempt."""
        self.status.deliver(self.uploader.flush)
        if outcome.ends and any(averaged(objective.of) for objective in self._objectives):
            outcome = replace(outcome, means=self.status.deliver(self._means) or None)
        self.status.deliver(lambda: self.attempt.close(outcome))

    @property
    def _early(self) -> str | None:
        """Why the process ended its training before it was through, as it says."""
        return str((handoff.read(self.folder.early) or {}).get("why") or "") or None

    def _means(self) -> dict[str, Any]:
        """The mean of the last values of each metric that is ranked by one."""
        points = self.uploader.curve
        if points is None:
            points = metrics.read(self.store, self.attempt.key.run, self.attempt.number)
        found = {}
        for objective in self._objectives:
            count = averaged(objective.of)
            values = [point.values[objective.name] for point in points if objective.name in point.values]
            if count and values:
                last = values[-count:]
                found[objective.name] = {"of": count, "value": sum(last) / len(last)}
        return found

    @property
    def last_sign(self) -> float:
        """When the process is known to have lived: it printed, or logged a point."""
        return max(map(_written, (self.folder.log, self.folder.metrics)))

    def _save(self, *, trusted: bool, result: Record | None, alive: float) -> None:
        if self.saver:
            self.saver.final(trusted=trusted, finished=result, alive=alive)

    def _keep_outputs(self) -> None:
        made = [] if self.before is None else self._made(self.before)
        if not (made or self._outputs or holds(self.folder.output)):
            return
        from hostler.attempt import working_files
        from hostler.records.checkpoint import outputs  # most scripts leave none

        run, restored = self.attempt.key.run, self.restored
        earlier = outputs.before(self.store, run, restored.place.attempt) if restored else []
        named = outputs.named(self.folder, self._outputs)
        own = {os.path.realpath(path) for path in named.values()}
        made = [file for file in made if file.is_link or str(file.path) not in own]
        limit = settings.sizes().outputs_max
        room = limit - outputs.unnamed_size(earlier, but={file.name for file in made})
        hurried = self.status.hurried and room > HURRY
        chosen, over = working_files.choose(made, HURRY if hurried else room)
        files = [outputs.Output(name, path) for name, path in named.items()]
        files += [outputs.Output(file.name, file.path, unnamed=True) for file in chosen]
        kept = outputs.keep(
            self.store, self.attempt, files, earlier, self.status.guard, self._sent, bundled=self.bundled
        )
        lines = [*kept.refused, *working_files.not_kept(over, limit, hurried=hurried)]
        for line in lines:
            self.uploader.note(line)
        facts = {"files": len(kept.rows), "size": sum(row["size"] for row in kept.rows)}
        self.left = {"outputs": {**facts, **({"unkept": lines} if lines else {})}}

    def _made(self, before: Look) -> list[Made]:
        from hostler.attempt import working_files

        return working_files.made(before, self.folder.work)


def kept_states(told: Any) -> dict[str, Any]:
    """The best states that a process or a checkpoint tells of, as far as a record may hold them."""
    rows = told.items() if isinstance(told, dict) else ()
    return {name: row for name, row in rows if _is_kept(row)}


def _is_kept(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get("goal"), str)
        and type(row.get("step")) is int
        and isinstance(row.get("value"), (int, float))
        and math.isfinite(row["value"])
    )


def _written(path: os.PathLike[str]) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def holds(folder: os.PathLike[str]) -> bool:
    """Whether anything is in the folder."""
    try:
        with os.scandir(folder) as entries:
            return any(True for _ in entries)
    except FileNotFoundError:
        return False
