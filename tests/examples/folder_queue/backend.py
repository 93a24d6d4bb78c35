"""Workers as jobs of a scheduler that is a folder: a file submits a job, another one cancels it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from hostler.backends.base import Capabilities, Launch, MachineInfo, Plan, Question, WorkerInfo
from hostler.errors import MachineError
from hostler.spec.project import Fleet


class FolderBackend:
    capabilities = Capabilities(restarts=True, shares_disk=True, shared=True, keeps_secrets=False)

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        words = [launch.python, "-m", "hostler.worker", launch.store, "--host", "folder", "--billed"]
        words += [word for sweep in launch.sweeps for word in ("--sweep", sweep)]
        words += ["--slots", str(fleet.slots)] if fleet.slots is not None else []
        words += ["--runs", str(fleet.runs_per_worker)] if fleet.runs_per_worker is not None else []
        words += ["--secrets", launch.vault] if launch.vault else []
        commands = ((*words, *launch.terms),) * fleet.workers
        return Plan(fleet, commands, (f"jobs in {_folder(fleet)}",), workers=fleet.workers, launch=launch)

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        folder, launch = _folder(plan.fleet), plan.launch or Launch("")
        if not folder.is_dir():
            raise MachineError(f"{folder}: no such folder", hint="start its scheduler, then try again")
        variables = dict(launch.plain)  # a bucket's keys must not lie in a job's file
        if launch.library:
            variables["PYTHONPATH"] = launch.library
        job = {"fleet": plan.fleet.name, "time": plan.fleet.options.get("time"), "variables": variables}
        return [_submit(folder, {**job, "command": command}) for command in plan.commands]

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return [_info(path) for path in _jobs(fleet)]

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        workers = self.list(fleet)
        for worker in workers:
            Path(worker.log).with_suffix(".kill" if now else ".cancel").touch()
        return workers

    def logs(self, worker: WorkerInfo) -> bytes:
        path = Path(worker.log)
        return path.read_bytes() if path.is_file() else b""

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        return []  # the scheduler chooses the machines


def open_backend(fleet: Fleet | None = None) -> FolderBackend:
    return FolderBackend()


def _folder(fleet: Fleet) -> Path:
    return Path(str(fleet.options.get("folder", ""))).expanduser()


def _submit(folder: Path, job: dict[str, object]) -> WorkerInfo:
    """Write the job beside its final name first: the scheduler never reads half a file."""
    path = folder / f"{secrets.token_hex(4)}.waits"
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(job))
    return _info(draft.rename(path))


def _jobs(fleet: Fleet) -> Iterator[Path]:
    """Jobs of the fleet that wait or run; the scheduler may rename or remove any of them meanwhile."""
    for path in sorted(_folder(fleet).glob("*.*")):
        if path.suffix in (".waits", ".runs"):
            try:
                ours = json.loads(path.read_text())["fleet"] == fleet.name
            except FileNotFoundError:
                continue
            if ours:
                yield path


def _info(job: Path) -> WorkerInfo:
    run = job.with_suffix(".run")
    detail = "waits" if job.suffix == ".waits" else f"runs {run.read_text() if run.is_file() else ''}".strip()
    return WorkerInfo(job.stem, "", True, detail, log=str(job.with_suffix(".log")))
