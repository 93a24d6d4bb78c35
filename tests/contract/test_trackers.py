"""Every tracking tool, by its own library: what goes in is read back, once, and a later attempt goes on."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import hostler
from hostler.analysis import foreign
from hostler.analysis.curves import curves
from hostler.analysis.frame import columns_of
from hostler.errors import DamagedError, MachineError, MissingError, UsageError
from hostler.records.series.points import Point
from hostler.spec.tracking import COMET, MLFLOW, OPTIONS, TENSORBOARD, TRACKIO, WANDB
from hostler.trackers import registry, wire
from hostler.trackers.base import Closing, Opening, run_id
from hostler.trackers.mlflow import _make_database, client
from hostler.trackers.past import Past

NOW = 1_700_000_000.0


@dataclass
class Tool:
    """One tool in a folder of the test's."""

    kind: str
    root: Path

    @property
    def options(self) -> dict[str, str]:
        places = {
            TENSORBOARD: {"dir": str(self.root / "shown")},
            WANDB: {"mode": "offline", "dir": str(self.root / "shown")},
            MLFLOW: {"uri": f"sqlite:///{self.root}/mlflow.db"},
            COMET: {"mode": "offline", "dir": str(self.root / "shown")},
            TRACKIO: {"dir": str(self.root / "shown")},
        }
        return places[self.kind]

    @property
    def place(self) -> str:
        return self.options.get("uri") or self.options["dir"]

    def opening(self, attempt: int = 1, run: str = "0000003-grid-ab12cd") -> Opening:
        return Opening(
            kind=self.kind,
            id=run_id("submission", run),
            run=run,
            name="grid/3",
            sweep="grid",
            project="digits",
            attempt=attempt,
            folder=str(self.root / f"attempt-{attempt}"),
            config={"lr": 0.1, "model": {"width": 64}, "name": "a b"},
            tags=("baseline",),
            options=self.options,
            started=NOW,
        )

    def attempt(self, opening: Opening, points: list[Point], state: str = "done") -> None:
        """One attempt from its beginning to its end; without a state it is cut off."""
        tracker = registry.load(self.kind)
        tracker.open(opening)
        for point in points:
            tracker.log([point])
            tracker.flush()
        tracker.close(Closing(state, config={"late": 7}, summary={"answer": 42}, ended=NOW + 60))

    def past(self) -> list[Past]:
        return [run for run in foreign.past(self.kind, self.place) if run.group != "Default"]

    def curves(self) -> dict[str, list[tuple[int, float]]]:
        (run,) = self.past()
        found: dict[str, list[tuple[int, float]]] = {}
        for point in run.points:
            for name, value in point.values.items():
                found.setdefault(name, []).append((point.step, value))
        return found


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty one of MLflow's: making its tables takes longer than all the rest."""
    file = tmp_path_factory.mktemp("mlflow") / "empty.db"
    client(f"sqlite:///{file}").search_experiments()
    return file


@pytest.fixture(params=OPTIONS)
def tool(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    if request.param == MLFLOW:
        shutil.copy(request.getfixturevalue("database"), tmp_path / "mlflow.db")
    for name in ("WANDB_API_KEY", "COMET_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    return Tool(request.param, tmp_path)


def points(*steps: int) -> list[Point]:
    return [Point(step, NOW + step, {"loss": 1 / step, "val/acc": step / 8}) for step in steps]


def test_logged_points_and_run_details_are_read_back(tool: Tool) -> None:
    odd = [Point(9, NOW + 9, {"loss": math.nan}), Point(10, NOW + 10, {"loss": math.inf})]
    late = Point(1, NOW + 11, {"epoch/acc": 0.5})  # another count of steps, behind the first
    tool.attempt(tool.opening(), [*points(1, 2, 4), *odd, late])
    curves = tool.curves()
    assert curves["val/acc"] == [(1, 0.125), (2, 0.25), (4, 0.5)]
    assert [step for step, _ in curves["loss"]] == [1, 2, 4, 9, 10]
    assert curves["loss"][:3] == [(1, 1.0), (2, 0.5), (4, 0.25)]
    assert math.isnan(curves["loss"][3][1]) and curves["loss"][4][1] > 1e300
    assert curves["epoch/acc"] == [(1, 0.5)]
    (run,) = tool.past()
    if tool.kind == TENSORBOARD:  # shows scalars alone
        assert run.name.endswith("0000003-grid-ab12cd")
        return
    told = {name: float(value) for name, value in run.params.items() if name in ("lr", "late")}
    assert (run.name, run.state, told) == ("grid/3", "done", {"lr": 0.1, "late": 7.0})
    assert "baseline" in run.tags


def test_later_attempt_continues_the_same_run_and_doubles_nothing(tool: Tool) -> None:
    tool.attempt(tool.opening(1), points(1, 2, 3, 4), state="")
    tool.attempt(tool.opening(2), points(1, 2, 3, 4, 5))  # what counts of the first, then its own
    assert tool.curves()["val/acc"] == [(n, n / 8) for n in range(1, 6)]
    assert tool.past()[0].state in ("done", "")


def test_an_attempt_that_was_cut_off_leaves_nothing_doubled(tool: Tool) -> None:
    tracker = registry.load(tool.kind)
    tracker.open(tool.opening(1))
    tracker.log(points(1, 2, 3))
    del tracker  # no close: whoever fed it was killed
    if tool.kind == WANDB:
        import wandb

        wandb.teardown()
    tool.attempt(tool.opening(2), points(1, 2, 3, 4))
    assert tool.curves()["val/acc"] == [(n, n / 8) for n in range(1, 5)]


def test_runs_are_kept_apart(tool: Tool) -> None:
    for n in range(2):
        run = f"000000{n}-grid-ab12cd"
        tool.attempt(replace(tool.opening(run=run), folder=str(tool.root / run)), points(n + 1))
    assert sorted(run.points[0].step for run in tool.past()) == [1, 2]
    assert len({run.id for run in tool.past()}) == 2


def test_names_that_tools_refuse_or_break_on_do_no_harm(tool: Tool) -> None:
    names = {"a/b c": 1.0, "loss<script>": 2.0, "ünï": 3.0, "step": 4.0, "x" * 300: 5.0}
    tool.attempt(tool.opening(), [Point(7, NOW, names)])
    values = sorted(value for rows in tool.curves().values() for _, value in rows if value < 6)
    assert values == ([1, 2, 3, 5] if tool.kind == WANDB else [1, 2, 3, 4, 5])


def test_tool_accepts_any_project_name_tag_and_run_name(tool: Tool) -> None:
    told = tool.opening()
    config = {"a//b": 1, "../up": 2, ".": 3, "sizes": [1, 2]}
    opening = replace(told, project="lab #1: 50% a/b", tags=("t" * 100,), config=config)
    tracker = registry.load(tool.kind)
    tracker.open(opening)
    tracker.log([Point(1, NOW, {"x//y": 1.0, "../up": 2.0, "..": 3.0})])
    tracker.close(
        Closing("pruned", tags=("late" * 30,), summary={"k/" * 150: 1, "text": "x" * 9000}, ended=NOW)
    )
    (run,) = tool.past()
    assert sorted(value for point in run.points for value in point.values.values()) == [1.0, 2.0, 3.0]
    if tool.kind != TENSORBOARD:
        assert run.state == "pruned" and any(tag.startswith("t" * 52) for tag in run.tags)


def test_parameters_are_in_a_frame_as_they_were_given(tool: Tool) -> None:
    if tool.kind == TENSORBOARD:
        pytest.skip("has none")
    config = {"lr": 0.1, "n": 3, "on": True, "model": {"sizes": [1, 2]}, "text": "a b", "none": None}
    opening = replace(tool.opening(), config=config)
    tool.attempt(opening, [Point(1, NOW, {"loss": -math.inf})])
    found = columns_of(f"{tool.kind}:{tool.place}", "digits" if tool.kind == MLFLOW else "grid")
    assert [found[name][0] for name in ("lr", "n", "on", "text", "none")] == [0.1, 3, True, "a b", None]
    assert str(found["model.sizes"][0]) == "[1, 2]"
    assert found["loss"][0] == -math.inf


def test_unknown_name_is_answered_with_the_nearest_known_name(tmp_path: Path) -> None:
    tool = Tool(TENSORBOARD, tmp_path)
    tool.attempt(tool.opening(), points(1, 2))
    place = f"{TENSORBOARD}:{tool.place}"
    with pytest.raises(UsageError, match=r"no sweep named 'shwn' .did you mean 'shown'"):
        columns_of(place, "shwn")
    with pytest.raises(UsageError, match=r"no metric named 'los' .did you mean 'loss'"):
        curves(place, metric="los")
    with pytest.raises(UsageError, match="no run named 'nobody'"):
        curves(place, run="nobody")
    assert len(curves(place, "shown", metric="loss")) == 2
    assert len(hostler.frame([place])) == 1


def test_a_database_of_mlflows_is_whole_or_not_there(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes its tables may be killed in the middle of it: MLflow would never open the file again."""
    tool = Tool(MLFLOW, tmp_path / "new")

    def makes(uri: str) -> MagicMock:
        assert not list(tmp_path.iterdir()), "the file is there before its tables are"
        shutil.copy(database, uri.removeprefix("sqlite:///"))
        return MagicMock()

    monkeypatch.setattr("hostler.trackers.mlflow.client", makes)
    _make_database(tool.place)
    assert [path.name for path in tool.root.iterdir()] == ["mlflow.db"]
    monkeypatch.undo()
    tool.attempt(tool.opening(), points(1))
    assert tool.curves()["loss"] == [(1, 1.0)]


def test_event_files_are_what_tensorboard_reads(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tool = Tool(TENSORBOARD, tmp_path)
    tool.attempt(tool.opening(), points(1, 2, 4))
    seen = EventAccumulator(str(tmp_path / "shown/grid/0000003-grid-ab12cd"))
    seen.Reload()
    assert [(e.step, e.value, e.wall_time) for e in seen.Scalars("val/acc")] == [
        (1, 0.125, NOW + 1),
        (2, 0.25, NOW + 2),
        (4, 0.5, NOW + 4),
    ]


def test_pieces_in_the_store_are_one_run_to_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tool = Tool(TENSORBOARD, tmp_path)
    tool.attempt(replace(tool.opening(), options={}), points(1, 2, 3))
    files = sorted(path.name for path in (tmp_path / "attempt-1/files").iterdir())
    assert len(files) == 3 and not any(name.startswith(".") for name in files)
    seen = EventAccumulator(str(tmp_path / "attempt-1/files"))
    seen.Reload()
    assert [e.step for e in seen.Scalars("loss")] == [1, 2, 3]


def test_what_pytorch_writes_for_tensorboard_is_read(tmp_path: Path) -> None:
    import numpy as np
    from torch.utils.tensorboard import SummaryWriter

    for begin, purge in ((0, None), (2, 2)):  # begun again at step 2: what was there after it is not shown
        with SummaryWriter(str(tmp_path / "logs/one"), purge_step=purge) as writer:
            for step in range(begin, begin + 4):
                writer.add_scalar("loss", step / 2, step, walltime=NOW + begin + step)
                writer.add_scalar("new", step / 2, step, new_style=True)
            writer.add_histogram("weights", np.array([1.0, 2.0]), 0)
    (run,) = foreign.past(TENSORBOARD, str(tmp_path / "logs"))
    rows = sorted((p.step, p.values["loss"]) for p in run.points if "loss" in p.values)
    assert run.name == "one" and rows == [(n, n / 2) for n in range(6)]
    assert sorted(p.step for p in run.points if "new" in p.values) == list(range(6))


def test_a_folder_of_wandb_is_what_wandb_itself_says(tmp_path: Path) -> None:
    from wandb.proto import wandb_internal_pb2 as messages

    from hostler.trackers.wandb_past import _records

    tool = Tool(WANDB, tmp_path)
    tool.attempt(tool.opening(), points(*range(1, 2000)))  # more than one block
    (file,) = (tmp_path / "shown").rglob("*.wandb")
    rows = 0
    for data in _records(file.read_bytes()):
        record = messages.Record()
        record.ParseFromString(data)
        rows += record.WhichOneof("record_type") == "history"
        if record.WhichOneof("record_type") == "run":
            assert (record.run.project, record.run.run_group) == ("digits", "grid")
    assert rows == 1999 == len(tool.past()[0].points)
    assert file.parent.name.endswith(tool.opening().id)


def test_cut_off_wandb_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    tool = Tool(WANDB, tmp_path)
    tool.attempt(tool.opening(), points(*range(1, 200)))
    (file,) = (tmp_path / "shown").rglob("*.wandb")
    file.write_bytes(file.read_bytes()[:9000])
    (run,) = tool.past()
    assert 10 < len(run.points) < 199 and run.state == "running"


@pytest.mark.parametrize("project", ["digits", "registry-a.b", "grid_system"])
def test_trackio_itself_reads_the_database_of_any_project(tmp_path: Path, project: str) -> None:
    """Without a folder of the user's it is one whole file among those that the store keeps."""
    from hostler.trackers.trackio import storage

    tool = Tool(TRACKIO, tmp_path)
    tool.attempt(replace(tool.opening(), options={}, project=project), points(1, 2, 4))
    (file,) = (tmp_path / "attempt-1/files").iterdir()
    rows = storage(file.parent).get_logs(file.stem, run_id=tool.opening().id)
    assert [(row["step"], row["val/acc"]) for row in rows] == [(1, 0.125), (2, 0.25), (4, 0.5)]
    (config,) = storage(file.parent).get_all_run_configs(file.stem).values()
    assert (config["lr"], config["_Group"], config["hostler.state"]) == (0.1, "grid", "done")


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (MLFLOW, "sqlite:///{}/m.db"),
        (MLFLOW, "{}/runs"),
        (COMET, "{}/a.zip"),
        (WANDB, "{}/w"),
        (TENSORBOARD, "{}/t"),
        (TRACKIO, "{}/t"),
        (TRACKIO, "{}/t.db"),
    ],
)
def test_reading_where_nothing_is_says_so_and_makes_nothing(tmp_path: Path, kind: str, where: str) -> None:
    with pytest.raises(MissingError, match="does not exist"):
        list(foreign.past(kind, where.format(tmp_path)))
    assert not list(tmp_path.iterdir())


def test_what_is_no_archive_of_comets_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK nothing")
    with pytest.raises(DamagedError, match="is not a Comet archive"):
        list(foreign.past(COMET, str(tmp_path / "a.zip")))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(COMET, "a.zip"), (WANDB, "run-a.wandb"), (TENSORBOARD, "a/events.out.tfevents.1"), (TRACKIO, "a.db")],
)
def test_damaged_file_is_reported_and_hides_no_other_file(tmp_path: Path, kind: str, name: str) -> None:
    tool = Tool(kind, tmp_path)
    tool.attempt(tool.opening(), points(1, 2))
    damaged = tmp_path / "shown" / name
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_bytes(b"nothing of theirs, or not any more")
    said: list[str] = []
    runs = list(foreign.past(kind, tool.place, said.append))
    assert len([run for run in runs if run.points]) == 1
    assert len(said) == 1 and name in said[0]


def test_messages_of_comets_that_are_damaged_cost_nobody_the_others(tmp_path: Path) -> None:
    head = {"offline_id": "ab", "start_time": 1, "stop_time": 2}
    good = {"type": "parameter_msg", "payload": {"param": {"paramName": "lr", "paramValue": 0.1}}}
    lines = ["[1]", "{", "null", '{"type": "metric_msg", "payload": 3}', json.dumps(good)]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("experiment.json", json.dumps(head))
        archive.writestr("messages.json", "\n".join(lines))
    (run,) = foreign.past(COMET, str(tmp_path))
    assert (run.id, run.params) == ("ab", {"lr": 0.1})


@pytest.mark.parametrize("where", ["sqlite:///{}", "{}"])
def test_a_database_of_mlflows_that_is_none_is_one_line(tmp_path: Path, where: str) -> None:
    file = tmp_path / "m.db"
    file.write_bytes(b"nothing of theirs")
    with pytest.raises(MachineError, match=r"MLflow at .*(not a database|Not a directory)"):
        list(foreign.past(MLFLOW, where.format(file)))


def test_a_damaged_message_is_no_message() -> None:
    with pytest.raises(wire.PartialMessage):
        list(wire.fields(b"\x0a\xff\xff\xff\xff\x0fabc"))
    with pytest.raises(wire.PartialMessage):
        list(wire.fields(b"\x80" * 12))
