"""Comet: online with an API key, else an archive that `comet upload` sends later."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler import env
from hostler.records.series.points import Point
from hostler.trackers.base import Closing, Held, Opened, Opening, flat, offline, without
from hostler.trackers.reach import reach

CONFIG = ".comet.config"
HOST = "https://www.comet.com"
_CURE = (
    "check COMET_URL_OVERRIDE and the network; mode: offline (--with mode=offline) writes files to send later"
)
_QUIET = {
    "log_code": False,
    "log_graph": False,
    "auto_param_logging": False,
    "auto_metric_logging": False,
    "auto_output_logging": False,
    "log_git_metadata": False,
    "log_git_patch": False,
    "log_env_details": False,
    "parse_args": False,
    "display_summary_level": 0,
    "disabled": False,
}


class Comet:
    def __init__(self) -> None:
        self._held: set[Held] = set()

    def open(self, opening: Opening) -> Opened:
        mode = opening.options.get("mode") or ("online" if _key() else "offline")
        where = {
            "project_name": opening.options.get("project") or opening.project,
            "workspace": opening.options.get("workspace"),
        }
        self._place = Path(opening.options.get("dir") or Path(opening.folder, "files"))
        self._offline, self._id = mode == "offline", opening.id
        if self._offline:
            self._begin_archive(Path(opening.folder, "work"), where)
        else:
            reach("comet", env.secret("COMET_URL_OVERRIDE") or HOST, _CURE)
            self._held = self._go_on(where)
        self._experiment.set_name(opening.name)
        self._tag(opening.tags)
        self._experiment.log_parameters(flat(opening.config))
        self._experiment.log_others({"hostler run": opening.run, "hostler sweep": opening.sweep})
        if self._offline:
            return offline(opening, "" if opening.options.get("mode") else "COMET_API_KEY", "comet upload")
        return Opened(url=self._experiment.get_url() or "")

    def log(self, points: Sequence[Point]) -> None:
        for point in without(points, self._held):
            self._experiment.log_metrics(dict(point.values), step=point.step)

    def flush(self) -> None:
        """It sends by itself."""

    def close(self, closing: Closing) -> None:
        self._experiment.log_parameters(flat(closing.config))
        self._tag(closing.tags)
        self._experiment.log_others(dict(closing.summary))
        if closing.state:
            self._experiment.log_other("state", closing.state)
        self._experiment.end()
        if self._offline:
            self._place.mkdir(parents=True, exist_ok=True)
            for archive in self._work.glob("*.zip"):
                os.replace(archive, self._place / f"{self._id}.zip")

    def _tag(self, tags: Sequence[str]) -> None:
        if tags:  # none is an error there
            self._experiment.add_tags(list(tags))

    def _begin_archive(self, work: Path, where: dict[str, Any]) -> None:
        comet_ml = _library()
        work.mkdir(parents=True, exist_ok=True)
        self._work = work
        self._experiment = comet_ml.OfflineExperiment(
            offline_directory=str(work), experiment_key=self._id, **where, **_QUIET
        )

    def _go_on(self, where: dict[str, Any]) -> set[Held]:
        comet_ml = _library()
        known = comet_ml.API().get_experiment_by_key(self._id)
        if known is None:
            self._experiment = comet_ml.Experiment(experiment_key=self._id, **where, **_QUIET)
            return set()
        self._experiment = comet_ml.ExistingExperiment(previous_experiment=self._id, **_QUIET)
        return {
            (row["metricName"], int(row["step"]))
            for row in known.get_metrics()
            if row.get("step") is not None
        }


def _library() -> Any:
    env.adopt({"COMET_LOGGING_CONSOLE": "ERROR"})
    import comet_ml

    return comet_ml


def _key() -> bool:
    if env.secret("COMET_API_KEY"):
        return True
    given = env.secret("COMET_CONFIG")
    return any(path.is_file() for path in (Path(given) if given else Path.home() / CONFIG, Path(CONFIG)))
