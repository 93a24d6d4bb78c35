"""The checks of `hostler doctor` for this machine and folder."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from hostler import __version__, env, settings
from hostler.attempt import nvml
from hostler.backends import registry
from hostler.backends.doctor import BAD, NONE, OK, WARN, Check, ask
from hostler.errors import HostlerError
from hostler.spec.job import PythonEnv
from hostler.spec.project import Fleet, Project, find_project
from hostler.spec.units import show_size
from hostler.worker.run import leftovers

OLDEST = (3, 10)


def project_file(folder: Path) -> tuple[Project | None, Check]:
    """The project of a folder, if its file can be read, and what there is to say of it."""
    path = find_project(folder)
    if path is None:
        return None, Check(OK, "project", f"no hostler.yaml in {folder}: defaults apply")
    from hostler.backends.project_file import load_project

    try:
        return load_project(path), Check(OK, "project", str(path))
    except HostlerError as error:
        return None, Check(BAD, "project", error.message, error.hint or "fix the file")


def machine(project: Project | None) -> Iterator[Check]:
    yield Check(OK, "hostler", __version__)
    yield _python()
    yield _git()
    yield _installer()
    yield _conda(project)
    yield from _gpus(project)
    yield _torch(project)
    yield from _cache()
    yield from _workers(project)


def disk(what: str, folder: Path) -> Check:
    least = settings.sizes().disk_min
    free = shutil.disk_usage(existing(folder)).free
    detail = f"{show_size(free)} free for the {what} at {folder}"
    if free < least:
        return Check(BAD, "disk", detail, "free some, name another folder, or HOSTLER_DISK_MIN to allow less")
    if free < 5 * least:
        return Check(WARN, "disk", detail, "soon full: free some, or name another folder")
    return Check(OK, "disk", detail)


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _python() -> Check:
    detail = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST:
        return Check(BAD, "python", detail, f"hostler needs Python {OLDEST[0]}.{OLDEST[1]} or newer")
    return Check(OK, "python", detail)


def _git() -> Check:
    path = shutil.which("git")
    if path is None:
        todo = "install git: commits are not written down, and `git:` sources cannot be fetched"
        return Check(WARN, "git", "not found", todo)
    return Check(OK, "git", ask([path, "--version"]).first)


def _installer() -> Check:
    path = shutil.which("uv")
    if path is not None:
        return Check(OK, "installer", ask([path, "--version"]).first)
    pip = _version("pip")
    if pip:
        return Check(OK, "installer", f"pip {pip}")
    return Check(WARN, "installer", "neither uv nor pip", "install uv: `python: {requirements: …}` needs one")


def _conda(project: Project | None) -> Check:
    found = next((p for name in ("mamba", "conda", "micromamba") if (p := shutil.which(name))), None)
    if found:
        return Check(OK, "conda", found)
    if project and (project.python.conda or project.python.conda_env):
        return Check(BAD, "conda", "not found, but hostler.yaml asks for it", "install miniforge, or use uv")
    return Check(NONE, "conda", "not here; needed only for `python: {conda: …}`")


def _gpus(project: Project | None) -> Iterator[Check]:
    snapshot = nvml.read()
    for gpu in snapshot.gpus:
        use = f"{show_size(gpu.memory_used)} of {show_size(gpu.memory_total)} used"
        yield Check(OK, "gpu", f"{gpu.index}: {gpu.name}, {use}, driver {snapshot.driver}")
    if snapshot.gpus:
        return
    asked = bool(project and (project.resources.gpus or project.resources.gpu_memory))
    usual = project.fleets.get(project.fleet or "") if project else None
    wanted = asked and (usual is None or usual.backend == registry.HERE)
    detail = snapshot.problem or "the driver shows no GPU"
    todo = "runs ask for a GPU: use another machine, or resources.gpus: 0" if wanted else ""
    yield Check(WARN if wanted else NONE, "gpu", detail, todo)


def _torch(project: Project | None) -> Check:
    version = _version("torch")
    if not version:
        detail = "not beside hostler; needed only for hostler train, and for scripts that import it"
        return Check(NONE, "torch", detail)
    if version.endswith("+cpu") and nvml.read().gpus and (project is None or project.python == PythonEnv()):
        todo = "runs in this Python will not see the GPU: install a build with CUDA"
        return Check(WARN, "torch", f"{version} beside hostler: a build without GPUs", todo)
    return Check(OK, "torch", f"{version} beside hostler")


def _cache() -> Iterator[Check]:
    folder = env.cache_dir()
    try:
        with tempfile.TemporaryFile(dir=existing(folder)):
            yield Check(OK, "cache", f"{folder} can be written to")
    except OSError as error:
        yield Check(BAD, "cache", f"{folder}: {error.strerror}", f"fix its rights, or set {env.CACHE}")
    yield disk("cache", folder)


def _workers(project: Project | None) -> Iterator[Check]:
    fleets = [Fleet("here", registry.HERE), *(project.fleets.values() if project else ())]
    machine = registry.this_machine()
    local = [worker for fleet in fleets if fleet.backend == registry.HERE for worker in machine.list(fleet)]
    pids = ", ".join(worker.id for worker in local)
    yield Check(OK, "workers", f"{len(local)} on this machine" + (f" (pid {pids})" if pids else ""))
    for record in leftovers.orphans():
        detail = f"process {record.pid} of {record.run} lives on without its worker"
        yield Check(WARN, "leftover", detail, "the next worker on this machine ends it")


def _version(package: str) -> str:
    """Version of a package beside hostler, '' if it is not installed; nothing is imported."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
