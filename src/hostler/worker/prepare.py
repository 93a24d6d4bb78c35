"""Everything a run needs on this machine, in the order it happens: code, Python, setup, data, its own copy.

All but the copy and the links is made once per machine and content. Nothing here is of one attempt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hostler import env
from hostler.errors import PrepareError
from hostler.spec.job import Job
from hostler.store.base import Store
from hostler.worker import library
from hostler.worker.code import code_dir, working_copy
from hostler.worker.data_dir import data_dir
from hostler.worker.once import Note
from hostler.worker.python_env import PathEnv, python_env
from hostler.worker.setup import setup_dir


@dataclass(frozen=True)
class Prepared:
    cwd: Path  # where the command starts: in the run's own copy of the code
    env: dict[str, str]  # the whole environment: inherited, the Python's, the job's
    exe: str  # the Python that the command finds first
    data: Path  # $HOSTLER_DATA: a folder of links


def prepare(job: Job, store: Store, cache: Path, run_dir: Path, note: Note) -> Prepared:
    """Ready one run; note() is told what takes time. Errors say what could not be prepared."""
    code = code_dir(store, job.source, cache, note)
    python = python_env(job.python, code, cache, note)
    environ = environment(job.env, python)
    varies = [python.exe, json.dumps(dict(job.env), sort_keys=True)]
    ready = setup_dir(job.setup, code, cache, note, environ=environ, varies=varies, cwd=job.cwd)
    data = data_dir(job.data, store, cache, run_dir, note, ready, environ)
    copy = working_copy(ready, run_dir / "work")
    return Prepared(_start(copy, job.cwd), {**environ, **library.variables(cache, environ)}, python.exe, data)


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
        raise PrepareError(f"the working directory {cwd!r} is not in the code", hint="is it ignored?")
    return start
