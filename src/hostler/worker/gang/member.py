"""A place in a gang that another worker leads: join → restore → prepare → ready → go → watch → exit.

It writes nothing into the run's log and no COMMIT. It leaves when the log says that the attempt is over, or
when the leader's heartbeat stands still. What it prints and measures is its own; of checkpoints, its ranks'
parts.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from hostler import env
from hostler.attempt.status import AttemptStatus
from hostler.errors import Fenced, HostlerError, StoreError
from hostler.records.body import Record
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run import control, heartbeats
from hostler.records.run import gang as gangs
from hostler.records.run.gang import Followed, Gang, GangStart, GangView
from hostler.records.run.handoff import Handoff
from hostler.records.run.heartbeats import Watch
from hostler.records.series.logs import LogWriter
from hostler.records.series.metrics import MetricWriter
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.worker.claim.slots import Placement
from hostler.worker.gang import meeting, ranks
from hostler.worker.gang.checkpoint import Shards
from hostler.worker.gang.meeting import Ports
from hostler.worker.gang.rendezvous import Joined
from hostler.worker.machine import Machine
from hostler.worker.prepare import inputs
from hostler.worker.prepare.prepare import Prepared, prepare
from hostler.worker.process.launching import launched
from hostler.worker.process.process import Exit, Process
from hostler.worker.run import leftovers, option_forms, run_folders
from hostler.worker.run.conclude import GOING, LEAVING, PREEMPTED, UNREACHABLE
from hostler.worker.run.failure import Verdict, classify, unready
from hostler.worker.run.invocation import invocation
from hostler.worker.run.kinds import WORKER
from hostler.worker.run.local_attempt import AttemptCost, uploader
from hostler.worker.run.watch import Watchman

T = TypeVar("T")


class Gone(Exception):
    """Nobody leads any more, or they went without us."""


class Member:
    """Carries out one node of a gang, in a thread of its own; the loop holds it like any run."""

    refused = False
    timed = False

    def __init__(
        self,
        machine: Machine,
        joined: Joined,
        placement: Placement,
        moved: Callable[[], None] = lambda: None,
        rate: float | None = None,
    ) -> None:
        """`rate`: what its part of the machine costs an hour; its leader adds it to what the run costs."""
        self._m, self._joined, self.placement, self._moved = machine, joined, placement, moved
        self._cost = AttemptCost(rate, machine.clock)
        self.attempt = Followed(machine.store, joined.key, joined.attempt)
        self._gang = Gang(machine.store, joined.key.run, joined.attempt)
        self._watch = Watch(machine.timing.lease)
        self._looked = float("-inf")
        run = joined.key.run
        self._job: Job = joined.job
        self._folder = Handoff(run_folders.of_run(machine.cache, machine.session, run, joined.attempt))
        self._status = AttemptStatus(self.attempt, machine.timing, machine.clock, machine.say, GOING)
        self._metric_writer = MetricWriter(machine.store, run, joined.attempt, joined.slot)
        log_writer = LogWriter(machine.store, run, joined.attempt, joined.slot)
        job = replace(
            joined.job, metrics=replace(joined.job.metrics, tools=False)
        )  # as the first node prints
        self._uploader = uploader(machine, job, self._folder, self._metric_writer, log_writer)
        self._process: Process | None = None
        self._shards: Shards | None = None
        self._watchman: Watchman | None = None
        self._ports: Ports | None = None
        self._told = False  # the leader knows that we have to go
        self._over = False
        self._thread = threading.Thread(target=self._run, name=f"{run}-{joined.slot}", daemon=True)
        self.vacant = False
        self.outcome = ""

    @property
    def cost(self) -> float:
        """Cost of this node of the attempt, where a price is known."""
        return self._cost.amount

    def stop(self, reason: str) -> None:
        self._status.ask(reason)

    def fence(self) -> None:
        self._status.fenced = True

    def facts(self) -> Record:
        return {"attempt": self.attempt.number, "slot": self._joined.slot, "step": self._uploader.steps}

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return not self._over

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._carry_out()
            self._wait_for(lambda seen: None)  # until the leader has concluded
        except Fenced:
            self.outcome = self._state_of_run()
        except Gone as gone:
            self.outcome = str(gone)
        except Exception as error:  # this machine's trouble must not keep the others waiting
            self.outcome = f"the worker failed: {error}"
            self._say_exit(Verdict(WORKER, f"{type(error).__name__}: {error}", traceback.format_exc()))
        finally:
            self._close()
            self._m.remover.remove_soon(self._folder.folder)
            self._cost.stop()
            self._over = True
            self._moved()

    def _carry_out(self) -> None:
        try:
            plan = self._wait_for(lambda seen: seen.leader).joined
            prepared, resuming = self._status.deliver(lambda: self._prepare(plan))
            self._ready(plan)
            go = self._wait_for(lambda seen: seen.go)
            node = go.rank_of(self._joined.slot)
            if node is None:
                raise Gone("the gang started without this worker")
            process = self._spawn(prepared, go, node, resuming=resuming)
        except Fenced:
            raise
        except (HostlerError, OSError) as error:
            verdict = unready(error, self._uploader.hide)
            if verdict.traceback:
                self._uploader.note(f"it printed:\n{verdict.traceback}")
            self._say_exit(verdict)
            return
        self._finish(self._watch_over(process))

    def _prepare(self, plan: Record) -> tuple[Prepared, bool]:
        """Code, packages, data, and the checkpoint that the leader goes on from."""
        m, key = self._m, self._joined.key
        self.attempt.look()
        asked, command = self._job.params(key.index), self._job.command_of(key.index)
        job = self._job = replace(sweeps.with_source(self._joined.job, self.attempt.state), command=command)
        self._job, _ = option_forms.learned(self._m.store, job, asked)
        brought = inputs.bring(asked, job.init, key.run, m.store, m.cache, self._uploader.note)
        self._folder.make(brought.params)
        self._params = brought.params
        if plan.get("restored"):
            attempt, _, step = str(plan["restored"]).partition("-")
            checkpoint = checkpoints.read(m.store, key.run, Place(int(attempt), int(step)))
            checkpoints.restore(m.store, checkpoint, self._folder.checkpoint)
        prepared = prepare(job, m.store, m.cache, self._folder.folder, self._uploader.note, m.preparations)
        return prepared, bool(plan.get("restored"))

    def _ready(self, plan: Record) -> None:
        asked = self._job.resources
        ports = self._ports = Ports(
            ranks.ports_of_node(self._job.distributed, asked.procs_per_node), env.ports()
        )
        ports.hush()  # nobody looks whether ours are reached
        here = plan.get("machine") == meeting.machine()
        reaches = {} if here else meeting.reached(plan.get("addresses") or [], int(plan["port"]))
        facts: Record = {"reaches": reaches, "ports": list(ports.numbers), "rate": self._cost.rate}
        self._status.deliver(lambda: self._gang.note(self._joined.slot, gangs.READY, facts))

    def _spawn(self, prepared: Prepared, go: GangStart, node: int, *, resuming: bool) -> Process:
        folder, m, run, procs = (
            self._folder,
            self._m,
            self._joined.key.run,
            self._job.resources.procs_per_node,
        )
        built = invocation(
            self._job,
            self._params,
            self.attempt,
            folder,
            base=prepared.env,
            store=m.store.url,
            visible=self.placement.visible,
            resuming=resuming,
        )
        built = launched(built, self._job, go, node, folder.folder)
        self._shards = Shards(
            m.store,
            run,
            self.attempt.number,
            node,
            procs,
            folder.checkpoint,
            writer=self._joined.slot,
            covered=self._uploader.covered,
            say=self._uploader.note,
        )
        if self._ports:
            self._ports.release()
        process = self._process = m.start(
            built.argv, cwd=prepared.cwd, env=built.env, folder=folder.folder, log=folder.log
        )
        leftovers.remember(m.session, run, process)
        return process

    def _watch_over(self, process: Process) -> Exit:
        assert self._shards is not None
        timing = self._m.timing
        quiet = replace(
            self._job, limits=replace(self._job.limits, hang=None, time=None)
        )  # the leader's to judge
        watchman = self._watchman = Watchman(
            quiet,
            self._folder,
            self._uploader,
            self._shards,
            process,
            timing,
            self._m.clock,
            stop=lambda: self._status.stop,
        )
        watchman.start()
        self._shards.start(min(1.0, timing.settle))
        while (exit := process.poll()) is None:
            self._look_around()
            if self._status.fenced:
                process.kill()
                continue
            watchman.check()
            self._uploader.try_tick()
            process.wait(timing.poll)
        self._uploader.exited()
        return exit

    def _finish(self, exit: Exit) -> None:
        """Send everything to the store before the leader hears that we have ended."""
        asked = self._watchman is not None and self._watchman.asked
        self._close()
        self.vacant = True
        self._moved()
        self._status.check()
        self._status.deliver(self._uploader.flush)
        if self._shards:
            self._status.deliver(self._shards.tick)
        tail = self._uploader.tail.decode("utf-8", "replace")
        in_project = partial(run_folders.in_project, self._m.cache)
        stop = self._status.stop if asked else None
        self._say_exit(classify(exit, tail, stop=stop, in_project=in_project))

    def _say_exit(self, verdict: Verdict) -> None:
        self._uploader.note(f"node at {env.host()}: {verdict.message}")
        facts = {**vars(verdict), "host": env.host()}
        try:
            self._status.deliver(self._uploader.flush)
            self._status.deliver(lambda: self._gang.note(self._joined.slot, gangs.EXIT, facts))
            if self._status.stop not in (PREEMPTED, LEAVING):  # else there is no time to lose
                self._metric_writer.pack()
        except Fenced:
            pass  # nobody waits for it
        except HostlerError as error:  # its points are there all the same
            self._m.say(f"{self._joined.key.run}: {error}")

    def _wait_for(self, what: Callable[[GangView], T | None]) -> T:
        """Until the gang has it; Fenced once the attempt is over."""
        timing = self._m.timing
        pause, event = max(timing.poll, timing.beat / 4), threading.Event()
        while True:
            self._status.check()
            self._look_around()
            try:
                gang_view = self._gang.look()
            except StoreError:
                gang_view = GangView()
            if self._process is None and not self.vacant and self._given_up(gang_view):
                raise Gone("the others took this worker for dead")
            found = what(gang_view)
            if found is not None:
                return found
            if self._told and self._process is None:
                raise Gone("had to leave")
            event.wait(pause)

    def _given_up(self, seen: GangView) -> bool:
        """Whether the leader has said that we are gone: it waits for another, as which we may come."""
        me = seen.members.get(self._joined.slot)
        return seen.go is None and me is not None and me.exit is not None

    def _look_around(self) -> None:
        """Say that we have to go; see whether the leader is there."""
        reason, slot = self._status.stop, self._joined.slot
        if reason in (*GOING, UNREACHABLE) and not self._told:
            self._told = True
            try:
                self._gang.note(slot, gangs.LEAVES, {"reason": reason})
            except StoreError:
                pass  # our heartbeat will tell
        if self._m.clock() - self._looked < self._m.timing.beat:
            return
        stamp = self._looked = self._m.clock()
        try:
            stale = self._watch.observe(stamp, heartbeats.etags(self._m.store), [self._joined.leader])
        except StoreError:
            return
        if stale:
            self.fence()
        self._follow_the_leader()

    def _follow_the_leader(self) -> None:
        """Stop because the leader has to go; this worker stays."""
        if self._process is None or self._status.stop:
            return
        try:
            leader = self._gang.look().leader
        except StoreError:
            return
        if leader and leader.leaves:
            self._status.ask(f"{leader.leaves.get('reason')} at {leader.host}")

    def _state_of_run(self) -> str:
        try:
            state = control.state_of(self._m.store, self._joined.key)
        except StoreError:
            return "left to another attempt"
        return state.state if state.ended else "its attempt is over"

    def _close(self) -> None:
        if self._process:
            self._process.close()
            leftovers.forget(self._m.session, self._joined.key.run)
            self._process = None
        if self._ports:
            self._ports.release()
        if self._watchman:
            self._watchman.stop()
        if self._shards:
            self._shards.stop()
