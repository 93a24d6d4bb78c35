"""Hydra's multirun on a fleet: `python train.py -m lr=0.1,0.01 hydra/launcher=hostler hydra.launcher.on=lab`.

Hydra finds this file by its place in `hydra_plugins`, and reads it at the start of every program of its own:
hostler is imported when jobs are launched. Each job is a call of `hostler.callbacks.hydra.run_script` by a
`hostler.Executor`, so a job that is done already is not run again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

OWN = ("hydra/launcher", "hydra.launcher", "hydra/sweeper", "hydra.sweeper", "hydra.sweep.", "hydra.mode")
KEYS: dict[str, Any] = {  # of `hydra.launcher`; `keys` are others of a sweep file
    "_target_": "hydra_plugins.hostler_launcher.HostlerLauncher",
    "on": None,
    "store": None,
    "name": None,
    "again": False,
    "keys": {},
}
MARK = "multirun.yaml"  # the file that Hydra writes at the top of a multirun
ConfigStore.instance().store(group="hydra/launcher", name="hostler", node=KEYS, provider="hostler")


class HostlerLauncher(Launcher):
    """Submits the jobs of a multirun and waits for them."""

    def __init__(
        self,
        on: str | None = None,
        store: str | None = None,
        name: str | None = None,
        again: bool = False,
        keys: Any = None,
    ) -> None:
        self._wish: dict[str, Any] = {"on": on, "store": store, "name": name, "again": again}
        self._keys: Any = OmegaConf.to_container(keys) if isinstance(keys, DictConfig) else keys or {}
        self._context: HydraContext | None = None
        self._config = DictConfig({})

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self._context, self._config = hydra_context, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from hostler.errors import HostlerError

        Path(self._config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)  # sweepers write into it
        try:
            jobs = self._carried_out(job_overrides)
        except HostlerError as error:
            raise CompactHydraException(f"hostler: {error}") from None
        numbered = enumerate(zip(job_overrides, jobs, strict=True), initial_job_idx)
        return [self._returned(list(given), job, number) for number, (given, job) in numbered]

    def _carried_out(self, job_overrides: Sequence[Sequence[str]]) -> list[Any]:
        """The jobs, once all of them are over."""
        import hostler
        from hostler.callbacks.hydra import run_script

        folder, script, options = _folder(), _script(), _options(self._config)
        name = self._wish["name"] or os.path.basename(script).removeprefix("-m ").removesuffix(".py")
        wish = {**self._wish, "name": name, "leave": _results(self._config)}
        jobs = []
        with hostler.Executor(**wish, **self._keys) as pool:
            for given in job_overrides:
                params, rest = _divided(given)
                where = [folder] if folder else []
                jobs.append(pool.submit(run_script, script, options, rest, *where, **params))
        return jobs

    def _returned(self, overrides: list[str], job: Any, number: int) -> JobReturn:
        """The job as sweepers of Hydra's want it: an error is raised when its value is asked for."""
        assert self._context is not None
        config = self._context.config_loader.load_sweep_config(self._config, overrides)
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = job.key.run if job.key else "", number
        error = job.exception()
        found = JobReturn(
            overrides=overrides,
            cfg=config,
            hydra_cfg=OmegaConf.masked_copy(config, "hydra"),
            working_dir=str(Path.cwd()),
            task_name=str(config.hydra.job.name),
            status=JobStatus.FAILED if error else JobStatus.COMPLETED,
        )
        found.return_value = CompactHydraException(f"hostler: {error}") if error else job.result()
        return found


def _folder() -> str:
    """The folder of the project that the program was started in; '' for the project's own."""
    from hostler.sweeping import project_here

    folder = os.path.relpath(os.path.realpath("."), os.path.realpath(project_here().root))
    return "" if folder == "." else folder


def _script() -> str:
    """The program that was started, from this folder on; `-m NAME` if it was a module."""
    from hostler.errors import UsageError
    from hostler.sweeping import project_here

    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return f"-m {spec.name.removesuffix('.__main__')}"
    file, root = getattr(main, "__file__", None), project_here().root
    path = os.path.realpath(file or ".")
    if file is None or os.path.relpath(path, os.path.realpath(root)).startswith(".."):
        raise UsageError(f"{file or 'this program'} is outside the project {root}", "run it from its folder")
    return os.path.relpath(path, os.path.realpath("."))


def _options(config: DictConfig) -> list[str]:
    """Options of the command line that say where the configuration is, and overrides of Hydra's own."""
    known, _ = get_args_parser().parse_known_args(sys.argv[1:])
    said = [(name, getattr(known, name)) for name in ("config_path", "config_name", "config_dir")]
    given = [word for name, value in said if value for word in (f"--{name.replace('_', '-')}", str(value))]
    return [*given, *(word for word in config.hydra.overrides.hydra if not word.lstrip("+~").startswith(OWN))]


def _results(config: DictConfig) -> list[str]:
    """Folders in which Hydra itself writes, from the project's folder on: they are not code. Those of earlier
    multiruns, wherever they were told to be, hold the file that Hydra marks them with. None holds the script,
    the folder it was started in or the configuration: a job needs these."""
    from hostler.fleet.snapshot.snapshot import tree_of
    from hostler.sweeping import project_here

    root = os.path.realpath(project_here().root)
    names = (os.path.split(node.name) for node in tree_of(Path(root), names=True).files)
    marked = [folder for folder, name in names if name == MARK and _is_of_hydra(Path(root, folder, name))]
    given = [os.path.realpath(folder) for folder in (config.hydra.sweep.dir, "outputs", "multirun")]
    found = [*given, *(os.path.join(root, folder) for folder in [*marked, "outputs", "multirun"])]
    needed = [root, *_needed(config)]
    free = [folder for folder in found if not any(_is_in(place, folder) for place in needed)]
    return list(dict.fromkeys(os.path.relpath(folder, root) for folder in free if _is_in(folder, root)))


def _is_of_hydra(file: Path) -> bool:
    """Whether Hydra wrote it: all of its own settings are there, also `runtime`, which no person writes."""
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:  # gone, or not ours to read
        return False
    lines = {line.rstrip() for line in text.splitlines()}
    return {"hydra:", "  sweep:", "  mode: MULTIRUN", "  runtime:"} <= lines


def _needed(config: DictConfig) -> list[str]:
    """The folder that the program was started in, its script, and where its configuration is found."""
    sources = OmegaConf.select(config, "hydra.runtime.config_sources") or []
    files = [source.path for source in sources if source.schema == "file"]
    modules = [source.path.replace(".", "/") for source in sources if source.schema == "pkg"]
    script = getattr(sys.modules["__main__"], "__file__", None)
    return [os.path.realpath(path) for path in (".", *([script] if script else []), *files, *modules)]


def _is_in(path: str, folder: str) -> bool:
    """Whether the path is the folder, or below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _divided(overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Plain `key=value` as parameters of the run; everything else as it was typed."""
    from hostler.spec.plain_data import plain

    params: dict[str, Any] = {}
    rest: list[str] = []
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    for text, override in zip(overrides, parsed, strict=True):
        try:
            if not _is_plain(override, params):
                raise ValueError(text)
            params[override.key_or_group] = plain(override.value(), text)
        except ValueError:
            rest.append(text)
    return params, rest


def _is_plain(override: Override, params: dict[str, Any]) -> bool:
    """Whether it gives a value to a key that is there, and is not about a group or given twice."""
    changes = override.is_add() or override.is_force_add() or override.is_delete() or override.package
    taken = override.key_or_group in {*params, "script", "options", "overrides", "folder"}
    return not (changes or taken or override.is_sweep_override())
