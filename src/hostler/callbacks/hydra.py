"""Scripts of Hydra as functions: `run_script` runs one and returns what its `main` returned.

The launcher (`hydra_plugins/hostler_launcher.py`) submits calls of it, one for each job of a multirun.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

from hostler import env
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import index_of
from hostler.spec import hydra as grammar

RETURNED: list[Any] = []  # return values of main, the newest last


class ReturnKeeper:
    """A callback of Hydra's that keeps what `main` returned."""

    def on_job_end(self, config: Any, job_return: Any, **more: Any) -> None:
        RETURNED.append(job_return.return_value)

    def __getattr__(self, name: str) -> Any:
        """Other moments of a job, which it does not look at."""
        if name.startswith("on_"):
            return lambda *args, **more: None
        raise AttributeError(name)


def run_script(script: str, options: list[str], overrides: list[str], folder: str = "", **params: Any) -> Any:
    """Run `python SCRIPT OPTIONS OVERRIDES key=value …` in a folder of the project, or `python -m NAME …` for
    `-m NAME`."""
    os.chdir(folder or ".")
    given = [f"{key}={grammar.value(value)}" for key, value in params.items()]
    handoff, path = env.run_dir(), Path.cwd()
    output = f"{grammar.RUN_DIR}={grammar.value(str(Handoff(handoff).output if handoff else path))}"
    ours = [f"hydra/launcher={_plain_launcher()}", "hydra.mode=RUN", output, *_identity()]
    ours.append(f"++hydra.callbacks.hostler._target_={__name__}.ReturnKeeper")
    module = script.removeprefix("-m ")
    sys.argv = [script, *options, *given, *overrides, *ours]
    sys.path.insert(0, str(path if module != script else Path(script).resolve().parent))
    try:
        if module != script:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as left:  # sys.exit(main()), where Hydra's main returns None
        if left.code not in (None, 0):
            raise
    return RETURNED[-1] if RETURNED else None


def _identity() -> list[str]:
    """The job's id and number, as a multirun has them: those of the run, which stay when jobs are added."""
    run, *_ = env.handed_run()
    return [f"hydra.job.id={grammar.value(run)}", f"hydra.job.num={index_of(run)}"] if run else []


def _plain_launcher() -> str:
    """A launcher that takes every key: the script's config may hold those of hostler's."""
    from hydra.core.config_store import ConfigStore

    node = {"_target_": "hydra._internal.core_plugins.basic_launcher.BasicLauncher"}
    ConfigStore.instance().store(group="hydra/launcher", name="hostler_run", node=node, provider="hostler")
    return "hostler_run"
