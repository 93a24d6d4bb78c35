"""Everything a run needs on this machine, in the order it happens: code, Python, setup, data, its own copy.

All but the copy and the links is made once per machine and content. Nothing here is of one attempt.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import hostler
from hostler import env, private
from hostler.attempt.working_files import Look, look
from hostler.errors import MachineError, PrepareError
from hostler.records.run.handoff import Handoff
from hostler.spec.job import Job
from hostler.store.base import Store
from hostler.worker.prepare import command as commands
from hostler.worker.prepare import secrets
from hostler.worker.prepare.code import code_dir, identity, working_copy
from hostler.worker.prepare.data_dir import data_dir, put_in_place
from hostler.worker.prepare.mask import Masker
from hostler.worker.prepare.once import Note, once_in_place
from hostler.worker.prepare.python_env import PathEnv, python_env

if TYPE_CHECKING:
    from hostler.worker.run.reused_folders import KeptFolder

FRESH = 1.0  # seconds after which what is ready on this machine is looked for again
KNOWN = 8  # jobs


@dataclass(frozen=True)
class Prepared:
    cwd: Path  # where the command starts: in the run's own copy of the code
    env: dict[str, str]  # the whole environment: inherited, the Python's, the job's
    exe: str  # the Python that the command finds first
    data: Path  # $HOSTLER_DATA: a folder of links
    files: Look  # of the copy, as they are before the command starts
    code: Path  # that it is a copy of


@dataclass(frozen=True)
class PreparedJob:
    """Code, Python and data that all runs of a job share on this machine."""

    of: tuple[object, ...]  # all of the job that it depends on
    at: float
    code: Path  # after its setup
    environ: dict[str, str]
    library: dict[str, str]
    exe: str


@dataclass
class Preparations:
    """Jobs that were ready a moment ago: a short run does not look again for what the last one found."""

    clock: Callable[[], float] = time.monotonic
    _known: list[PreparedJob] = field(default_factory=list)  # the newest first; never changed, only replaced

    def ready(self, job: Job, make: Callable[[], PreparedJob]) -> PreparedJob:
        now, of = self.clock(), dependence(job)
        fresh = [prepared_job for prepared_job in self._known if now - prepared_job.at < FRESH]
        for known in fresh:
            if known.of == of and known.code.is_dir():
                return known
        made = replace(make(), at=self.clock())
        self._known = [made, *(prepared_job for prepared_job in fresh if prepared_job.of != of)][:KNOWN]
        return made


def dependence(job: Job) -> tuple[object, ...]:
    """All of a job that code, Python and variables on this machine depend on. Its runs differ in the rest."""
    return job.source, job.python, job.env, job.setup, job.cwd, job.secrets


def prepare(
    job: Job,
    store: Store,
    cache: Path,
    run_dir: Path,
    note: Note,
    known: Preparations | None = None,
    kept: KeptFolder | None = None,
) -> Prepared:
    """Ready one run; note() is told what takes time. Errors say what could not be prepared. `kept`: what its
    folder was, with a copy of some code in it."""

    def make() -> PreparedJob:
        secrets.check(job)
        return _ready(job, store, cache, note)

    ready = known.ready(job, make) if known else make()
    data = data_dir(job.data, store, cache, run_dir, note, ready.code, ready.environ)
    files: Look = {}
    copy = Handoff(run_dir, job.neighbours).work
    if kept and kept.code == ready.code:
        files = dict(kept.files)
    else:
        working_copy(ready.code, copy, files)
    if put_in_place(job.data, data, copy):
        files = look(copy)
    environ = {**ready.environ, **ready.library}
    return Prepared(_start(copy, job.cwd), environ, ready.exe, data, files, ready.code)


def _ready(job: Job, store: Store, cache: Path, note: Note) -> PreparedJob:
    code = code_dir(store, job.source, cache, note)
    python = python_env(job.python, code, cache, note)
    environ = environment(job.env, python)
    varies = [python.exe, json.dumps(dict(job.env), sort_keys=True)]
    hide = Masker(secrets.hidden(job)).cover
    done = setup_dir(job.setup, code, cache, note, environ=environ, varies=varies, cwd=job.cwd, hide=hide)
    return PreparedJob(dependence(job), 0.0, done, environ, library_variables(cache, environ), python.exe)


def environment(variables: Mapping[str, str], python: PathEnv) -> dict[str, str]:
    """The whole environment of a command of preparation."""
    inherited = env.inherited()
    path = os.pathsep.join([*python.path_prefix, variables.get("PATH", inherited.get("PATH", os.defpath))])
    return {**inherited, **python.env, **variables, "PATH": path}


def _start(copy: Path, cwd: str) -> Path:
    start = Path(os.path.normpath(copy / cwd))
    if start != copy and copy not in start.parents:
        raise PrepareError(f"the working directory {cwd!r} is outside the project")
    if not start.is_dir():
        raise PrepareError(
            f"the working directory {cwd!r} is not in the code",
            hint="check `cwd`, and that it is not ignored",
        )
    return start


def setup_dir(
    command: Sequence[str],
    code: Path,
    cache: Path,
    note: Note,
    *,
    environ: Mapping[str, str],
    varies: Sequence[str] = (),
    cwd: str = "",
    hide: Callable[[str], str] = str,
) -> Path:
    """The code after its `setup:` command, which runs once per machine, code, command and Python.

    It runs in a copy of the code that stays where it is (builds and editable installs hold that path); runs
    copy their working folder from it. Of a setup that fails nothing is kept but its log. `varies` is what
    else makes it another setup (Python, variables), `hide` covers in its log what nobody may read.
    """
    if not command:
        return code
    key = hashlib.sha256(json.dumps([list(command), identity(code), list(varies), cwd]).encode()).hexdigest()[
        :40
    ]
    folder = cache / "prepared" / key

    def make(place: Path) -> None:
        note("running setup")
        working_copy(code, place)
        log = folder.with_name(f"{key}.log")
        try:
            commands.run(command, what="setup", cwd=place / cwd, environ=environ, log=log)
        finally:
            text = log.read_bytes().decode("utf-8", "surrogateescape")
            log.write_bytes(hide(text).encode("utf-8", "surrogateescape"))

    return once_in_place(folder, make, what="setup", note=note)


def library_variables(cache: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """PYTHONPATH with the library last, so that a project's own choice wins."""
    pythonpath = environ.get("PYTHONPATH", "")
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [pythonpath, str(_library_folder(cache))])),
        "PYTHONUNBUFFERED": "1",
    }


def _library_folder(cache: Path) -> Path:
    """A folder with one link to this very package: `import hostler` works with nothing installed. Not the
    folder it is installed in, which would bring all of its neighbours along."""
    package = Path(hostler.__file__).resolve().parent
    place = cache / "library" / hashlib.sha256(str(package).encode()).hexdigest()[:16]
    link = place / "hostler"
    private.closed_folder(place)
    if not link.is_symlink():
        try:
            link.symlink_to(package)
        except FileExistsError:  # another worker was faster
            pass
    if os.readlink(link) != str(package):
        raise MachineError(f"{link} leads to another hostler", f"rm -r {place}: it is made again")
    return place
