"""MLflow: a run of an experiment, found again by a tag, since MLflow chooses the ids of its runs itself."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import UsageError
from hostler.records.series.points import Point
from hostler.trackers.base import Closing, Held, Opened, Opening, flat, without
from hostler.trackers.reach import reach

ID = "hostler.id"
URI = "MLFLOW_TRACKING_URI"
RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"  # by default 7, which is four minutes without a word
_MOST = {"metrics": 1000, "params": 100, "tags": 100}  # in one request
_KEY = 250  # the longest name
_LONGEST = 500  # of a parameter, in the oldest servers
_SQLITE = "sqlite:///"
_REFUSED = re.compile(r"[^\w\-. /]")
_DOTS = re.compile(r"^\.\.|^\.$")
_ENDS = {
    "done": "FINISHED",
    "pruned": "FINISHED",
    "stopped": "KILLED",
    "failed": "FAILED",
    "diverged": "FAILED",
}


class Mlflow:
    def open(self, opening: Opening) -> Opened:
        uri = opening.options.get("uri") or env.secret(URI)
        if not uri:
            raise UsageError(
                f"mlflow: no uri is given and {URI} is not set", hint="set `uri:` under trackers: mlflow:"
            )
        reach(
            "mlflow",
            uri,
            f"start the server, or give another: `uri:` under trackers: mlflow:, --with uri=, or {URI}",
        )
        _make_database(uri)
        server = self._client = client(uri)
        experiment = self._experiment(opening.options.get("experiment") or opening.project)
        found = server.search_runs([experiment], f"tags.`{ID}` = '{opening.id}'", max_results=1)
        self._run = found[0].info.run_id if found else self._create(experiment, opening)
        known = server.get_run(self._run)
        server.update_run(self._run, status="RUNNING")
        self._params(opening.config, known.data.params)
        url = f"{uri.rstrip('/')}/#/experiments/{experiment}/runs/{self._run}"
        self._held = self._holds(known.data.metrics)
        return Opened(url=url if uri.startswith("http") else uri)

    def log(self, points: Sequence[Point]) -> None:
        from mlflow.entities import Metric

        rows = [
            Metric(_name(name), value, int(point.time * 1000), point.step)
            for point in without(points, self._held, _name)
            for name, value in point.values.items()
        ]
        self._batches("metrics", rows)

    def flush(self) -> None:
        """Every request is seen at once."""

    def close(self, closing: Closing) -> None:
        self._params(closing.config, self._client.get_run(self._run).data.params)
        tags = {_name(f"hostler.result.{name}"): value for name, value in closing.summary.items()}
        self._tags({**tags, **{_name(f"hostler.tag.{tag}"): "true" for tag in closing.tags}})
        if closing.state:
            ended = int(closing.ended * 1000) or None
            self._client.set_tag(self._run, "hostler.state", closing.state)
            self._client.set_terminated(self._run, _ENDS.get(closing.state, "FINISHED"), ended)

    def _experiment(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        experiment_by_name = self._client.get_experiment_by_name(name)
        if experiment_by_name is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:  # another run's feeder was faster
                experiment_by_name = self._client.get_experiment_by_name(name)
                if experiment_by_name is None:
                    raise
        return str(experiment_by_name.experiment_id)

    def _create(self, experiment: str, opening: Opening) -> str:
        tags = {ID: opening.id, "hostler.run": opening.run, "hostler.sweep": opening.sweep}
        tags |= {_name(f"hostler.tag.{tag}"): "true" for tag in opening.tags}
        if opening.notes:
            tags["mlflow.note.content"] = opening.notes
        began = int(opening.started * 1000) or None
        made = self._client.create_run(experiment, start_time=began, tags=tags, run_name=opening.name)
        return str(made.info.run_id)

    def _holds(self, metrics: Mapping[str, float]) -> set[Held]:
        """By the names that MLflow has them under."""
        histories = ((name, self._client.get_metric_history(self._run, name)) for name in metrics)
        return {(name, int(one.step)) for name, history in histories for one in history}

    def _params(self, config: Mapping[str, Any], known: Mapping[str, str]) -> None:
        """A parameter is never changed there: the first value stays."""
        from mlflow.entities import Param

        given = {_name(name): str(value)[:_LONGEST] for name, value in flat(config).items()}
        self._batches("params", [Param(name, text) for name, text in given.items() if name not in known])

    def _tags(self, tags: Mapping[str, Any]) -> None:
        from mlflow.entities import RunTag

        self._batches("tags", [RunTag(name, str(value)) for name, value in tags.items()])

    def _batches(self, what: str, rows: Sequence[Any]) -> None:
        most = _MOST[what]
        for at in range(0, len(rows), most):
            self._client.log_batch(self._run, **{what: rows[at : at + most]})


def _make_database(uri: str) -> None:
    """A file of SQLite's that is not there yet, whole from its first moment: making its tables takes MLflow
    seconds, and what is killed within them leaves a file that MLflow never opens again."""
    file = Path(uri.removeprefix(_SQLITE))
    if not uri.startswith(_SQLITE) or "?" in uri or file.exists():
        return
    with tempfile.TemporaryDirectory(prefix="hostler-mlflow-") as folder:
        client(f"{_SQLITE}{folder}/new.db").search_experiments(max_results=1)
        file.parent.mkdir(parents=True, exist_ok=True)
        arriving = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            shutil.copyfile(Path(folder, "new.db"), arriving)
            with contextlib.suppress(FileExistsError):  # another run's feeder was faster
                os.link(arriving, file)
        finally:
            arriving.unlink(missing_ok=True)


def client(uri: str) -> Any:
    if not uri.startswith(("http", "sqlite", "postgresql", "mysql", "mssql", "databricks")):
        env.adopt({"MLFLOW_ALLOW_FILE_STORE": "true"})  # a folder is what was asked for
    if not env.secret(RETRIES):
        env.adopt({RETRIES: "3"})
    import logging

    from mlflow.tracking import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.ERROR)
    return MlflowClient(tracking_uri=uri)


def _name(name: str) -> str:
    """A name that MLflow accepts: few special characters, and a normalised path."""
    parts = _REFUSED.sub("_", name)[:_KEY].split("/")
    return "/".join(_DOTS.sub("__", part) for part in parts if part) or "_"
