"""Starts workers for sweeps: plans, funds and starts a launch. For commands and `hostler.sweep`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hostler import env, settings
from hostler.backends.base import (
    Backend,
    Cloud,
    Informed,
    Launch,
    Named,
    PartlyStarted,
    Plan,
    Undone,
    WorkerInfo,
)
from hostler.errors import (
    CloudError,
    HostError,
    HostlerError,
    MachineError,
    MissingError,
    StoreError,
    UsageError,
)
from hostler.fleet import library
from hostler.fleet.fleet_choice import (
    completed,
    engine_of,
    fleet_of,
    is_there,
    script_fleet,
    sweep_fleet,
)
from hostler.fleet.ready import Readiness, drivers, left_out, ready, say, variables
from hostler.frozen import dataclass
from hostler.money import tariff
from hostler.money.tariff import Asked, Funded
from hostler.records import layout
from hostler.records.packs.packed_store import open_at
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet, Project
from hostler.store import Store
from hostler.store.registry import is_folder

if TYPE_CHECKING:
    from hostler.fleet.secrets import LaunchSecrets


@dataclass(frozen=True)
class Launcher:
    """A fleet and the backend that starts its workers."""

    project: Project
    url: str
    fleet: Fleet
    engine: Backend
    ready: Readiness | None = None  # None: the machines were not asked yet
    skip: frozenset[str] = frozenset()  # hosts that have workers already
    beside: bool = False  # only hosts that have none when it starts
    awaits: bool = True  # hosts that are down now get their workers when they are back
    search_path: str = ""  # PATH of workers on this machine, if it is not this process's
    most: int = 0  # workers that the launch may grow to: its money is reserved for so many
    take_back: Callable[[str], bool] = lambda question: False  # asked if only some could be started

    def prepared(self, store: Store) -> Launcher:
        """Asked before anything is submitted: machines that answer, a store that they reach, a plan."""
        env.check_switches()  # else a worker in the background would say so
        if self.project.trackers:
            from hostler.fleet import tracking  # with the trackers themselves

            tracking.check(self.project, say, here=self._is_here)
        self._check_nodes(self.plan(()))  # a script, or a store, that won't do is refused here
        readiness = ready(self.engine, self.fleet, store)
        return replace(self, fleet=self.informed(store), ready=readiness)

    def informed(self, store: Store) -> Fleet:
        """The fleet as its platform knows it, where that chooses machines; its data should be near them."""
        if not isinstance(self.engine, Informed):
            return self.fleet
        urls = [store.url, *(entry.url for entry in self.project.data.values() if entry.url)]
        buckets = [url.removeprefix("gs://").partition("/")[0] for url in urls if url.startswith("gs://")]
        return self.engine.informed(self.fleet, list(dict.fromkeys(buckets)))

    def _check_nodes(self, plan: Plan) -> None:
        """A run that takes more workers than the fleet has would wait for ever."""
        asked = self.project.resources
        if not self.engine.capabilities.gangs and 0 < plan.workers < asked.fewest:
            raise UsageError(
                f"a run takes {asked.fewest} workers at once, but {self.fleet.name} has {plan.workers}",
                hint=f"workers: {asked.nodes} under fleets, or fewer resources.nodes",
            )

    def beside_others(self) -> Launcher:
        """Only for machines that have no worker of this fleet."""
        worker_infos = self.engine.list(self.fleet)
        return replace(
            self, beside=True, skip=frozenset(worker.host for worker in worker_infos if worker.alive)
        )

    def missing(self, names: Sequence[str], runs: int) -> int:
        """For how many of so many open runs of these sweeps the fleet has no worker, nor one on its way."""
        workers = [worker for worker in self.engine.list(self.fleet) if worker.alive]
        there = sum(w.count for w in workers if not w.sweeps or not set(w.sweeps).isdisjoint(names))
        if self.fleet.runs_per_worker is not None:
            return runs if not there else 0
        return max(0, runs - there)

    def start_missing(
        self, names: Sequence[str], runs: int, *, new: bool = False, jobs: Sequence[Job] = ()
    ) -> Sequence[WorkerInfo]:
        """Workers for so many open runs; in a queue that others wait in, for those that have none there. For
        sweeps that are new nobody can be there yet: the queue is not asked. `jobs` of the sweeps, where the
        caller has just written them, are not read again."""
        if not self.engine.capabilities.shared:
            return self.start(names, runs, jobs)
        try:
            wanted = runs if new else self.missing(names, runs)
            if wanted:
                return self.start(names, wanted, jobs)
        except HostlerError as error:
            there = " ".join(names)
            say(
                f"{there} is in the store and waits; run the same command again to queue it, "
                f"or hostler rm {there} to remove it"
            )
            if isinstance(error, PartlyStarted):
                _undo(error, self.take_back)
            raise
        text = names[0] if len(names) == 1 else "that"
        say(f"workers for all of {text} are in the queue already")
        return ()

    def plan(
        self,
        names: Iterable[str],
        runs: int = 0,
        more: Mapping[str, str] | None = None,
        funded: Funded | None = None,
        hidden: Mapping[str, str] | None = None,
    ) -> Plan:
        """The workers to start for these sweeps, of which so many runs are open (0: not known)."""
        return self.engine.plan(self.fleet, self.launch(names, runs, more, funded, hidden))

    def foreseen(self, store: Store, names: Sequence[str], runs: int) -> Plan:
        """The launch that a start now would make, and the files its machines would take. A cloud is not
        asked: what it holds now changes nothing in it."""
        known = (
            self.prepared(store) if not isinstance(self.engine, Cloud) else self._likely(store, self.engine)
        )
        jobs = [sweeps.load_spec(store, name)[0] for name in names]
        funded = foresee(store, self.asked(jobs, runs))
        elsewhere = not self.engine.capabilities.shares_disk
        more = variables(store) if elsewhere else {}
        return known.plan(names, runs, more, funded, self.hidden(jobs))

    def _likely(self, store: Store, engine: Cloud) -> Launcher:
        self._check_nodes(self.plan(()))
        library.bring(store)
        machine_info = engine.likely(self.fleet)
        return replace(self, ready=Readiness(wheels=drivers(store, [machine_info], in_image=True)))

    def launch(
        self,
        names: Iterable[str],
        runs: int = 0,
        more: Mapping[str, str] | None = None,
        funded: Funded | None = None,
        hidden: Mapping[str, str] | None = None,
    ) -> Launch:
        """All that a backend is told."""
        funded, hidden = funded or Funded(), hidden or {}
        cache = self.fleet.cache or self.project.cache
        if cache and self.engine.capabilities.shares_disk:
            cache = str(self.project.root / Path(cache).expanduser())
        known = self.ready or Readiness()
        launch = Launch(
            store=self.url,
            sweeps=tuple(names),
            python=sys.executable,
            cache=cache,
            runs=runs,
            resources=self.project.resources,
            logs=_logs(self.engine, self.fleet, self.url),
            script=_script(self.project, self.fleet),
            variables=more or {},
            secrets=hidden,
            vault=self._secrets(hidden).place(funded.name) if hidden else "",
            folders=known.folders,
            wheels=known.wheels,
            machines=known.machines,
            skip=self.skip,
            generation=funded.name,
            deadline=funded.deadline,
            at=funded.at,
        )
        if not self.engine.capabilities.makes_machines:
            return launch
        from hostler.fleet import machines  # with the money and the ends of launches

        return machines.equipped(launch, self.project)

    def asked(self, jobs: Sequence[Job], runs: int = 0) -> Asked:
        """This launch for these sweeps, as its money is asked for."""
        workers = max(self.plan([job.name for job in jobs], runs).workers, self.most)
        fleet = completed(self.engine, self.fleet)
        return tariff.asked(fleet, self.engine.capabilities, workers, jobs)

    def start(self, names: Iterable[str], runs: int = 0, jobs: Sequence[Job] = ()) -> Sequence[WorkerInfo]:
        """The workers that were started; machines that had none are named. On named hosts nobody else of this
        machine starts any meanwhile: the process that brings late hosts looks again afterwards."""
        if not self.awaits or not isinstance(self.engine, Named):
            return self._start(names, runs, jobs)
        from hostler.fleet import late_hosts  # for hosts alone

        with late_hosts.turn(self.url, self.fleet.name):
            return (self.beside_others() if self.beside else self)._start(names, runs, jobs)

    def _start(self, names: Iterable[str], runs: int, jobs: Sequence[Job]) -> Sequence[WorkerInfo]:
        wanted, more = tuple(dict.fromkeys(names)), dict[str, str]()
        store = self._store if not self._is_here else None
        if store and not self.engine.capabilities.shares_disk:
            if self.ready is None:
                return self.prepared(store)._start(wanted, runs, jobs)
            more = variables(store)
        elif self.search_path and self._is_here:
            more = {"PATH": self.search_path}
        known = list(jobs)

        def read() -> Sequence[Job]:  # once, and only where somebody asks
            if not known:
                known.extend(sweeps.load_spec(self._store, name)[0] for name in wanted)
            return known

        hidden = self.hidden(read()) if store else {}
        funded, fresh = self._agree(read, runs)
        try:
            if fresh and hidden:
                self._secrets(hidden).put(funded)
            started = _start(self.engine, self.plan(wanted, runs, more, funded, hidden))
            if started and not any(worker.alive for worker in started):
                raise HostError(f"no worker was started: {started[0].detail}")
        except (PartlyStarted, KeyboardInterrupt):  # what was started costs what it was given, and goes on
            raise
        except BaseException as error:  # a bug of ours, too: nobody would end that launch
            why = _taken_down(store, self.engine, funded, wanted) if isinstance(error, CloudError) else None
            if fresh:
                self._cancel(funded, hidden, error)
            if why:
                raise why from error
            raise
        for worker in started:
            if not worker.alive:
                left_out(worker.host, worker.detail)
        worker_infos = [worker for worker in started if worker.alive]
        if self.awaits and isinstance(self.engine, Named):
            self._await([worker.host for worker in started if not worker.alive])
        if not worker_infos and (why := _taken_down(store, self.engine, funded, wanted)):
            raise why
        return worker_infos

    def _await(self, hosts: Sequence[str]) -> None:
        """Leave a process behind that starts workers on these hosts once they answer."""
        if not hosts:
            return
        from hostler.fleet import late_hosts  # only where one is down

        late_hosts.await_hosts(
            late_hosts.Note(self.url, self.fleet.name, str(self.project.root), tuple(hosts))
        )
        say(f"{', '.join(hosts)}: workers start there by themselves while others of {self.fleet.name} work")

    @cached_property
    def _store(self) -> Store:
        return open_at(self.url)

    @property
    def _is_here(self) -> bool:
        """Its workers are started by this process, and have its environment."""
        does = self.engine.capabilities
        return does.shares_disk and not does.shared

    def hidden(self, jobs: Iterable[Job]) -> dict[str, str]:
        """Variables for workers elsewhere alone: secrets of runs, and addresses of notices."""
        if self._is_here:
            return {}
        return env.secrets(name for job in jobs for name in (*job.wanted, *job.notify.to))

    def _secrets(self, values: Mapping[str, str]) -> LaunchSecrets:
        from hostler.fleet.secrets import launch_secrets  # most launches have none

        return launch_secrets(self.engine, self.fleet, self.url, values)

    def _cancel(self, funded: Funded, hidden: Mapping[str, str], error: BaseException) -> None:
        """Nothing of it is left. Why it was not started is what counts, not what fails here."""
        watched = error.seconds if isinstance(error, Undone) else None
        if hidden:
            with suppress(StoreError, CloudError):
                self._secrets(hidden).remove(funded.name)
        if not funded.name:
            return
        from hostler.money import funding

        with suppress(StoreError):
            funding.cancel(self._store, funded, settings.timing(), watched)

    def _agree(self, jobs: Callable[[], Sequence[Job]], runs: int) -> tuple[Funded, bool]:
        """The launch, and whether it is a new one: machines that are there take more sweeps."""
        if not self.engine.capabilities.makes_machines:
            return self._fund(jobs, runs), True
        from hostler.fleet import machines

        store = self._store
        machines.prepare(store, self.project, self.engine, self.fleet)
        wheels = (self.ready or Readiness()).wheels
        shape = machines.shape_for(self.project, self.fleet, self.url, wheels, jobs())
        return machines.agree(store, self.fleet, jobs(), shape, lambda: self._fund(jobs, runs), self.most)

    def settle(self, store: Store) -> None:
        """Launches of this fleet of which its engine lists nobody are over."""
        from hostler.records.launch import settlement  # only where a budget is kept

        if not is_there(self.engine, self.fleet):
            settlement.close_silent(store, self.fleet.name, settings.timing())

    def _fund(self, jobs: Callable[[], Sequence[Job]], runs: int) -> Funded:
        """Money is reserved for what costs some; on a machine that costs nobody anything nobody asks."""
        asked = self.asked([], runs)
        if asked.own and not tariff.counts(asked):
            return Funded()
        from hostler.money import funding

        return funding.fund(self._store, replace(asked, jobs=jobs()), settings.timing())


def foresee(store: Store, asked: Asked) -> Funded:
    """The agreement that a launch would get now; UsageError if its money is not there."""
    if not tariff.counts(asked):
        return Funded()
    from hostler.money import funding  # with all records of launches: most fleets cost nothing

    return funding.foresee(store, asked, settings.timing())


def launcher(project: Project, url: str, on: str | None) -> Launcher:
    fleet = fleet_of(project, on, url)
    return Launcher(project, url, fleet, engine_of(fleet))


def sweep_launcher(
    project: Project, url: str, on: str | None, parallel: int | None, script: Path | None = None
) -> Launcher:
    fleet = sweep_fleet(project, on, parallel, url)
    if script is not None:
        fleet = script_fleet(project, on, parallel, script)
    return Launcher(project, url, fleet, engine_of(fleet))


def is_served(store: Store, name: str, pause: Callable[[float], None] = time.sleep) -> bool:
    """Whether workers are at a sweep, and stay: one that was about to leave is gone a second later."""
    from hostler.records.launch import serving  # only for sweeps

    if not serving.look(store).serves(name):
        return False
    pause(1.0)
    return serving.look(store).serves(name)


def _logs(engine: Backend, fleet: Fleet, url: str) -> str:
    """A folder that the workers see if they see the store, or else one in the cache; where those are,
    machines elsewhere know themselves."""
    folder = Path(layout.fleet_log(slug(fleet.name), "any")).parent
    if not engine.capabilities.shares_disk:
        return str(folder)
    return str((Path(url) if is_folder(url) else env.cache_dir()) / folder)


def _script(project: Project, fleet: Fleet) -> str:
    path = str(fleet.options.get("script") or "")
    try:
        return (project.root / path).read_text() if path else ""
    except OSError as error:
        raise MissingError(
            f"{path}: {error.strerror}", hint=f"`script` of fleet {fleet.name} names an sbatch file"
        ) from None


def _start(engine: Backend, plan: Plan) -> Sequence[WorkerInfo]:
    try:
        return engine.start(plan)
    except OSError as error:
        raise MachineError(
            f"no worker could be started: {error.strerror}: {error.filename or env.machine_dir()}",
            hint="free space there, or set TMPDIR to another folder",
        ) from error


def _taken_down(
    store: Store | None, engine: Backend, funded: Funded, names: Sequence[str]
) -> CloudError | None:
    """The error to show if somebody took the launch down meanwhile: it explains the cloud's own error."""
    if store is None or not engine.capabilities.makes_machines:
        return None
    from hostler.fleet import machines

    try:
        return machines.taken_down(store, funded, names)
    except StoreError:
        return None


def _undo(error: PartlyStarted, wants: Callable[[str], bool]) -> None:
    """Cancel what was started, if the person wants that."""
    ids = ", ".join(worker_info.id for worker_info in error.started)
    if wants(f"{error.message}. Cancel what is queued ({ids})?"):
        error.undo()
        raise MachineError(f"{error.message}; that is cancelled", error.hint.partition("; scancel")[0])
