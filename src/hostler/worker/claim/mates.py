"""Finds runs that may share the process of one that was just claimed, and has them claimed for this worker.

Runs of one key may share a process (`spec/together.py`). Those that are open come first; then those that a
pruner lets go on to the same step, or that a search wants tried now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hostler.records.run.state import RunState
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.spec import together
from hostler.spec.job import Job
from hostler.spec.states import RUNNING
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.claimer import Claimer, Taken
from hostler.worker.claim.open_runs import needed, sort_open
from hostler.worker.claim.search_client import May, Promoted, SearchClient
from hostler.worker.claim.served_sweeps import ServedSweeps
from hostler.worker.claim.session_watch import SessionWatch


class Mates:
    def __init__(
        self,
        claimant: Claimant,
        sweeps: ServedSweeps,
        watch: SessionWatch,
        claimer: Claimer,
        search_client: SearchClient,
    ) -> None:
        self._claimant, self._sweeps, self._watch = claimant, sweeps, watch
        self._claimer, self._search_client = claimer, search_client

    def claim(self, taken: Taken, limit: Callable[[Job, OpenRun], int], mine: Iterable[str]) -> list[Taken]:
        """Runs that may share this one's process, claimed. `limit` says how many may go with a run. Of those
        that are open each worker takes its share: what runs elsewhere has devices, too."""
        queue, key = self._sweeps.get(taken.job.name), taken.attempt.key
        if queue is None:
            return []
        free, workers = self._free(queue, frozenset(mine))
        first = OpenRun(key, taken.attempt.state)
        place = needed(taken.job, first.state).resources

        def may(state: RunState) -> bool:
            """Whether the first one's GPU is large enough for it, too."""
            return place.larger_than(state.outgrew) == place

        wanted, begun = together.key_of(taken.job, key.index), first.state.attempts > 1
        alike = [
            run
            for run in free
            if run.key.run != key.run
            and may(run.state)
            and (run.state.attempts > 0) == begun  # else they are at different steps
            and together.key_of(queue.job, run.key.index) == wanted
            and limit(queue.job, run) > 1
        ]
        most, share = limit(taken.job, first) - 1, -(-(len(alike) + 1) // workers) - 1
        mates: list[Taken] = []
        for run in alike[: min(most, share)]:
            if not self._claimer.is_full(queue.job) and (mate := self._claimer.take(queue, run)):
                mates.append(mate)
        if first.state.until:
            mates += self._promoted(queue, wanted, first.state.until, most - len(mates), may)
        elif queue.job.together.asked and not begun:
            mates += self._asked(queue, wanted, most - len(mates))
        return mates

    def _free(self, queue: Queue, mine: frozenset[str]) -> tuple[list[OpenRun], int]:
        """Runs of one sweep that may be claimed, and how many workers are alive."""
        opens = [(queue, run) for run in queue.open(trusting=True)]
        holders = (run.state.session or "" for _, run in opens if run.state.state == RUNNING)
        sessions = self._watch.look(holders)
        runs = sort_open(opens, self._claimant, sessions, lambda ask: True, mine)
        return [run for _, run in runs.free], sessions.alive

    def _promoted(self, queue: Queue, wanted: str, until: int, most: int, may: May) -> list[Taken]:
        """Others that a pruner lets go on to the same step."""
        taken_runs: list[Taken] = []
        while len(taken_runs) < most and not self._claimer.is_full(queue.job):
            answer = self._search_client.promotion(queue, may)
            if answer is None or answer.until != until or not (mate := self._alike(queue, answer, wanted)):
                break
            taken_runs.append(mate)
        return taken_runs

    def _asked(self, queue: Queue, wanted: str, most: int) -> list[Taken]:
        """Runs that a search wants tried now, as far as they fit with the others; the rest is queued."""
        taken_runs: list[Taken] = []
        while (
            len(taken_runs) < most
            and not self._claimer.is_full(queue.job)
            and self._sweeps.stands(queue.job.name)
        ):
            answer = self._search_client.ask(queue, queue.open(trusting=True))
            if not isinstance(answer, Promoted) or answer.until:
                break
            if not (mate := self._alike(queue, answer, wanted)):
                break
            taken_runs.append(mate)
        return taken_runs

    def _alike(self, queue: Queue, answer: Promoted, wanted: str) -> Taken | None:
        """The run of a search's answer, claimed if it has the key of the others."""
        alike = together.key_of(queue.job, answer.run.key.index) == wanted
        return self._claimer.take(queue, answer.run, answer.until) if alike else None
