"""Weights & Biases: online with an API key, else a folder that `wandb sync` sends later.

Every point is one row of history with its own `step`, which is the x axis of all metrics: W&B's own counter
must grow, and a script may log validation by epochs beside training by batches.
"""

from __future__ import annotations

import netrc
import os
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import wandb

from hostler import env
from hostler.records.series.points import Point
from hostler.spec.states import RUNNING
from hostler.trackers import wandb_past
from hostler.trackers.base import Closing, Held, Opened, Opening, offline, without
from hostler.trackers.reach import reach

STEP = "step"
LAST = 20.0  # seconds that its files may take to be whole
HOST = "https://api.wandb.ai"
_PROXIES = ("WANDB_HTTP_PROXY", "WANDB_HTTPS_PROXY")  # of its own, which nobody else knows
_CURE = "check WANDB_BASE_URL and the network; mode: offline (--with mode=offline) writes files to send later"
_REFUSED = re.compile(r"[/\\#?%:]")  # in a project's name
_LONGEST = 128  # of a project's name
_TAG = 64
# Its own watching of console, code, machine and git is none of ours. Those that a version does not know are
# left out.
_QUIET = {
    "silent": True,
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "save_code": False,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
}


class Wandb:
    def __init__(self) -> None:
        self._held: set[Held] = set()

    def open(self, opening: Opening) -> Opened:
        asked = opening.options.get("mode") or env.secret("WANDB_MODE")
        mode: Any = asked or ("online" if _key() else "offline")
        self._offline = mode != "online"
        if not self._offline:
            answers()
        self._place = Path(opening.options.get("dir") or Path(opening.folder, "files"))
        work = Path(opening.folder, "work")
        for folder in (work, self._place):
            folder.mkdir(parents=True, exist_ok=True)
        self._id = opening.id
        self._run = wandb.init(
            id=opening.id,
            project=opening.options.get("project") or _named(opening.project),
            entity=opening.options.get("entity"),
            group=opening.options.get("group") or opening.sweep,
            name=opening.options.get("name") or opening.name,
            notes=opening.notes or None,
            tags=_tags(opening.tags),
            config=dict(opening.config),
            dir=str(work),
            mode=mode,
            resume=None if self._offline else "allow",
            settings=_settings(opening.started),
        )
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)
        if self._offline:
            return offline(opening, "" if asked else "WANDB_API_KEY", "wandb sync")
        self._held = self._holds()
        return Opened(url=self._run.url or "")

    def log(self, points: Sequence[Point]) -> None:
        for point in without(points, self._held):
            self._run.log({**point.values, STEP: point.step, "_timestamp": point.time})

    def flush(self) -> None:
        """It sends by itself."""

    def close(self, closing: Closing) -> None:
        if closing.config:
            self._run.config.update(dict(closing.config), allow_val_change=True)
        if closing.tags:
            self._run.tags = tuple(_tags([*(self._run.tags or ()), *closing.tags]))
        for name, value in {**closing.summary, **({"state": closing.state} if closing.state else {})}.items():
            self._run.summary[name] = value
        written = Path(self._run.settings.sync_dir)
        self._run.finish(exit_code=0 if closing.state in ("done", "pruned") else 1)
        wandb.teardown()  # its own process writes on after finish()
        if self._offline:
            _wait_for_the_end(written)
            self._keep(written)

    def _keep(self, written: Path) -> None:
        """The folder to its place; those of earlier attempts, which this one holds all of, go."""
        old = [path for path in self._place.glob(f"offline-run-*-{self._id}") if path.name != written.name]
        arriving = self._place / f".{written.name}"
        shutil.rmtree(arriving, ignore_errors=True)
        shutil.copytree(written, arriving, ignore=shutil.ignore_patterns("logs", "tmp"))
        shutil.rmtree(self._place / written.name, ignore_errors=True)
        os.replace(arriving, self._place / written.name)
        for one in old:
            shutil.rmtree(one, ignore_errors=True)

    def _holds(self) -> set[Held]:
        if not self._run.resumed:
            return set()
        known = wandb.Api().run(f"{self._run.entity}/{self._run.project}/{self._id}")
        return {
            (name, int(row[STEP]))
            for row in known.scan_history()
            if row.get(STEP) is not None
            for name, value in row.items()
            if value is not None and name != STEP and not name.startswith("_")
        }


def answers() -> None:
    """Raises in one line if its server does not."""
    if not any(map(env.secret, _PROXIES)):
        reach("wandb", env.secret("WANDB_BASE_URL") or HOST, _CURE)


def _wait_for_the_end(written: Path) -> None:
    """The last record, of the run's exit, is in the file."""
    until = time.monotonic() + LAST
    while time.monotonic() < until:
        if any(one.state != RUNNING for one in wandb_past.read(str(written), say=lambda _: None)):
            return
        time.sleep(0.05)


def _named(project: str) -> str:
    """The name of a project that nobody wrote for W&B."""
    return _REFUSED.sub("-", project)[:_LONGEST]


def _tags(given: Sequence[str]) -> list[str]:
    """Each once; one that is longer than W&B allows is cut."""
    return list(dict.fromkeys(tag[:_TAG] for tag in given))


def _settings(started: float) -> Any:
    known = getattr(wandb.Settings, "model_fields", {})
    wanted = {**_QUIET, **({"x_start_time": started} if started else {})}
    return wandb.Settings(**{name: value for name, value in wanted.items() if name in known})


def _key() -> bool:
    """Whether this machine may write to the server; asking wandb itself would ask a person."""
    if env.secret("WANDB_API_KEY"):
        return True
    host = urlsplit(env.secret("WANDB_BASE_URL") or HOST).hostname or ""
    try:
        return netrc.netrc(env.secret("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False
