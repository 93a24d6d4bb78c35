"""Everything one attempt sends to the store, from its claim to its end.

A run's program owns one: it restores, sends points and output while the run runs, keeps what the
process left, and closes the attempt. Outputs and checkpoint go before the entry that closes it, and of a
finished run the outputs before the checkpoint: whoever finds a finished checkpoint ends the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostler import env, settings
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.records.body import Record
from hostler.records.run.attempt import Attempt
from hostler.records.run.entries import Outcome
from hostler.records.run.handoff import Handoff
from hostler.records.run.state import RunState
from hostler.records.series.metrics import Origin
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.attempt.saver import Saver
    from hostler.attempt.working_files import Look, Made
    from hostler.records.checkpoint.checkpoints import Checkpoint

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
    ) -> None:
        """`state` is the run's when it was claimed; `outputs` are paths in the working folder to keep besides
        the output folder, however large."""
        self.store, self.attempt, self.folder, self.state = store, attempt, folder, state
        self.uploader, self.status, self._outputs = uploader, status, outputs
        self.saver: Saver | None = None  # made by worker/run/running_process.py or script_saver.py
        self.restored: Checkpoint | None = None  # the checkpoint that the attempt goes on from
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
        last = self.uploader.last_values()
        return {"attempt": self.attempt.number, "step": self.uploader.steps, "metrics": last}

    def restore(
        self, say: Callable[[str], None], fits: Callable[[], bool] = lambda: True
    ) -> Checkpoint | None:
        """Bring the newest good checkpoint here that fits, and tell readers what the curves go on from."""
        from hostler.records.checkpoint import checkpoints  # a first attempt of a script by hand needs none

        state = self.state
        found = self.restored = checkpoints.restore_newest(
            self.store,
            self.attempt.key.run,
            self.folder.checkpoint,
            skip=state.suspects,
            after=state.fresh_from,
            before=self.attempt.number,
            say=say,
            fits=fits,
        )
        if found:
            others = found.record.get("positions") or {}
            origin = Origin(found.place.attempt, found.place.step, found.position, others)
            self.status.deliver(lambda: self.uploader.continue_from(origin, found.record))
        elif state.attempts > 1:
            self.status.deliver(self.uploader.start_over)
        return found

    def keep(self, *, trusted: bool, done: bool = False, result: Record | None = None) -> None:
        """Keep what the process left. `trusted`: it ended by itself, so that what it wrote is whole. `result`
        marks the checkpoint as that of a finished run."""
        steps = [lambda: self._save(trusted=trusted, result=result), self._keep_outputs]
        for step in reversed(steps) if done else steps:
            self.status.deliver(step)

    def filled(self, outcome: Outcome, seconds: float) -> Outcome:
        """The outcome with what is known of the run and of this attempt, which took so many seconds."""
        return replace(
            outcome,
            restored=self.restored.place.name if self.restored else None,
            host=env.host(),
            attempts=self.state.attempts,
            started=self.state.first,
            metrics=self.uploader.totals,
            step=self.uploader.steps,
            seconds=round(seconds, 3),
            total=round(self.state.seconds + seconds, 3),
        )

    def close(self, outcome: Outcome) -> None:
        """Bring the rest of points and output into the store, then the entry that closes the attempt."""
        self.status.deliver(self.uploader.flush)
        self.status.deliver(lambda: self.attempt.close(outcome))

    def _save(self, *, trusted: bool, result: Record | None) -> None:
        if self.saver:
            self.saver.final(trusted=trusted, finished=result)

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
        kept = outputs.keep(self.store, self.attempt, files, earlier, self.status.guard, self._sent)
        lines = [*kept.refused, *working_files.not_kept(over, limit, hurried=hurried)]
        for line in lines:
            self.uploader.note(line)
        facts = {"files": len(kept.rows), "size": sum(row["size"] for row in kept.rows)}
        self.left = {"outputs": {**facts, **({"unkept": lines} if lines else {})}}

    def _made(self, before: Look) -> list[Made]:
        from hostler.attempt import working_files

        return working_files.made(before, self.folder.work)


def holds(folder: os.PathLike[str]) -> bool:
    """Whether anything is in the folder."""
    try:
        with os.scandir(folder) as entries:
            return any(True for _ in entries)
    except FileNotFoundError:
        return False
