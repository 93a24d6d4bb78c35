"""Each word of clouDL's Manager, on a real store in a folder, and its test double."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hostler
from hostler.errors import HostlerError, UsageError
from hostler.manager import Manager, TestManager
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.sdk.start import CURRENT


class Model:
    """Weights that are one list; anything with a state_dict will do."""

    def __init__(self, value: float = 0.0) -> None:
        self.weights = [value, value]

    def state_dict(self) -> dict[str, Any]:
        return {"w": list(self.weights)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights = list(state["w"])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own, with its own store; whatever a test leaves open is closed."""
    for name in ("HOSTLER_DIR", "HOSTLER_RUN", "HOSTLER_ATTEMPT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOSTLER_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["train.py"])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    if CURRENT.run is not None:
        CURRENT.run.close(KeyboardInterrupt())
    hostler.EarlyStopping.made = None


@pytest.fixture
def handed(here: Path, monkeypatch: pytest.MonkeyPatch) -> Handoff:
    """This process is one that a worker started, with parameters."""
    folder = Handoff(here / "handed")
    folder.make({"lr": 0.5})
    monkeypatch.setenv("HOSTLER_DIR", str(folder.folder))
    monkeypatch.setenv("HOSTLER_RUN", "0000000-sweep-abcdef")
    monkeypatch.setenv("HOSTLER_SWEEP", "sweep")
    monkeypatch.setenv("HOSTLER_ATTEMPT", "1")
    return folder


def interrupted(manager: Any) -> None:
    """As if the process had been killed here: what was saved is all that is left."""
    run = CURRENT.run
    assert run is not None
    manager._close(KeyboardInterrupt())


def curves() -> dict[str, list[float]]:
    found = hostler.curves()
    return {name: list(rows["value"]) for name, rows in found.groupby("metric")}


# create_manager, get_hyparams, get_cur_max_iter


def test_under_a_worker_the_hyperparameters_are_those_of_the_run(handed: Handoff) -> None:
    manager = Manager.create_manager()
    assert manager.get_hyparams() == {"lr": 0.5}
    assert manager.get_cur_max_iter() == (0, 1)


def test_clouDLs_own_arguments_are_taken(handed: Handoff) -> None:
    assert Manager.create_manager(math, "./tmp", 3, "a-bucket").get_hyparams() == {"lr": 0.5}


def test_without_worker_and_hyperparameters_it_says_how_to_give_them() -> None:
    with pytest.raises(UsageError, match="no hyperparameters"):
        Manager.create_manager()


def test_a_list_under_a_worker_is_refused(handed: Handoff) -> None:
    with pytest.raises(UsageError, match="one trial"):
        Manager.create_manager(hyparams=[{"lr": 1}, {"lr": 2}])


def test_it_is_offered_by_hostler_itself() -> None:
    assert hostler.Manager is Manager


# hyparam_search


def test_search_calls_the_function_once_per_trial_with_its_parameters() -> None:
    seen = []

    def run(manager: Manager) -> None:
        seen.append((manager.get_hyparams()["lr"], manager.get_cur_max_iter()))
        manager.track_model(Model())
        manager.finished()

    Manager.create_manager(hyparams=[{"lr": 1}, {"lr": 2}, {"lr": 3}]).hyparam_search(run)
    assert seen == [(1, (0, 3)), (2, (1, 3)), (3, (2, 3))]
    assert sorted(hostler.frame()["state"]) == ["done"] * 3


def test_a_function_may_take_the_paths_of_weights_too() -> None:
    seen = []

    def run(manager: Manager, param_pth: str | None, best_param_pth: str | None) -> None:
        seen.append((param_pth, best_param_pth))

    Manager.create_manager(hyparams={"lr": 1}).hyparam_search(run)
    assert seen == [(None, None)]


def test_a_trial_that_forgets_finished_is_finished_for_it() -> None:
    Manager.create_manager(hyparams={"lr": 1}).hyparam_search(lambda manager: manager.track_model(Model()))
    assert list(hostler.frame()["state"]) == ["done"]


def test_failed_trial_is_recorded_and_the_next_one_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def run(manager: Manager) -> None:
        if manager.get_hyparams()["lr"] == 1:
            raise ValueError("too low")
        manager.track_model(Model())

    with pytest.raises(HostlerError, match=r"1 of 2 trials failed: trial 0: ValueError: too low"):
        Manager.create_manager(hyparams=[{"lr": 1}, {"lr": 2}]).hyparam_search(run)
    assert sorted(hostler.frame()["state"]) == ["done", "failed"]
    assert "ValueError: too low" in capsys.readouterr().err


def test_cut_off_search_continues_with_the_trials_left() -> None:
    """right: a finished run is not restarted."""
    seen: list[int] = []

    def run(manager: Manager) -> None:
        number = manager.get_hyparams()["n"]
        seen.append(number)
        if number == 1 and seen.count(1) == 1:
            raise KeyboardInterrupt
        manager.track_model(Model())
        manager.finished()

    trials = [{"n": 0}, {"n": 1}, {"n": 2}]
    with pytest.raises(KeyboardInterrupt):
        Manager.create_manager(hyparams=trials).hyparam_search(run)
    Manager.create_manager(hyparams=trials).hyparam_search(run)
    assert seen == [0, 1, 1, 2]


def test_finished_search_begins_anew_when_it_is_started_again() -> None:
    seen: list[int] = []

    def run(manager: Manager) -> None:
        seen.append(manager.get_hyparams()["n"])

    for _ in range(2):
        Manager.create_manager(hyparams=[{"n": 0}, {"n": 1}]).hyparam_search(run)
    assert seen == [0, 1, 0, 1]


# track_model, save_progress, start_epoch


def test_tracked_model_gets_its_weights_back_for_the_next_epoch() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    model = Model()
    assert manager.start_epoch() == 0
    manager.track_model(model)
    for epoch in range(3):
        manager.add_progress("epochs", epoch)
        model.weights = [epoch + 0.5, 1.0]
        manager.add_progress("loss", 1 / (epoch + 1))
    manager.save_progress()
    interrupted(manager)

    again = Manager.create_manager(hyparams={"lr": 1})
    restored = Model(99.0)
    assert again.start_epochs() == 3
    again.track_model(restored)
    assert restored.weights == [2.5, 1.0]
    assert again.get_progress() == {"epochs": [0, 1, 2], "loss": [1.0, 0.5, 1 / 3]}


def test_an_epoch_that_was_only_announced_is_begun_again() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    manager.track_model(Model())
    manager.add_progress("epochs", 0)
    manager.add_progress("loss", 1.0)
    manager.add_progress("epochs", 1)
    manager.save_progress()
    interrupted(manager)
    assert Manager.create_manager(hyparams={"lr": 1}).start_epoch() == 1


def test_without_the_key_epochs_the_least_frequent_progress_counts_them() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    manager.track_model(Model())
    for step in range(6):
        manager.add_progress("batch loss", step)
        if step % 3 == 2:
            manager.add_progress("loss", step)
    manager.save_progress()
    interrupted(manager)
    assert Manager.create_manager(hyparams={"lr": 1}).start_epoch() == 2


def test_weights_that_are_handed_over_come_back_as_files() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    manager.add_progress("epochs", 0)
    manager.save_progress({"w": [1.0]}, {"w": [2.0]})
    interrupted(manager)
    seen = []

    def run(manager: Manager, param_pth: str, best_param_pth: str) -> None:
        seen.extend(json.loads(Path(path).read_text()) for path in (param_pth, best_param_pth))

    Manager.create_manager(hyparams={"lr": 1}).hyparam_search(run)
    assert seen == [{"w": [1.0]}, {"w": [2.0]}]


def test_a_save_without_any_weights_is_refused() -> None:
    with pytest.raises(UsageError, match="called without weights"):
        Manager.create_manager(hyparams={"lr": 1}).save_progress()


def test_a_stop_request_is_met_between_two_epochs_saved_first(handed: Handoff) -> None:
    manager = Manager.create_manager()
    model = Model()
    manager.track_model(model)
    manager.add_progress("epochs", 0)
    model.weights = [7.0, 7.0]
    manager.add_progress("loss", 0.1)
    handoff.write(handed.stop, {"reason": "preempted"})
    manager._run._home._looked = float("-inf")  # type: ignore[union-attr]
    with pytest.raises(SystemExit) as left:
        manager.add_progress("epochs", 1)
    assert left.value.code == 75
    manager._close(left.value)
    again = Manager.create_manager()
    restored = Model()
    assert again.start_epoch() == 1
    again.track_model(restored)
    assert restored.weights == [7.0, 7.0]
    assert again.get_progress() == {"epochs": [0], "loss": [0.1]}


def test_after_a_resume_the_next_trial_starts_clean() -> None:
    """right: A leaks the weights of the trial that was resumed into all that follow."""
    trials = [{"n": 0}, {"n": 1}]
    manager = Manager.create_manager(hyparams=trials)
    manager.track_model(Model(5.0))
    manager.add_progress("epochs", 0)
    manager.add_progress("loss", 0.1)
    manager.save_progress()
    interrupted(manager)
    seen = []

    def run(manager: Manager) -> None:
        stopping = hostler.EarlyStopping()
        model = Model(1.0)
        start = manager.start_epoch()
        manager.track_model(model)
        seen.append(
            (manager.get_hyparams()["n"], start, model.weights, manager.get_progress(), stopping.best)
        )
        stopping.stop(0.5)
        manager.finished()

    Manager.create_manager(hyparams=trials).hyparam_search(run)
    assert seen[0] == (0, 1, [5.0, 5.0], {"epochs": [0], "loss": [0.1]}, None)
    assert seen[1] == (1, 0, [1.0, 1.0], {}, None)


def test_early_stopping_made_in_a_trial_continues_after_a_restart() -> None:
    """right: A's begins anew."""
    manager = Manager.create_manager(hyparams={"lr": 1})
    stopping = hostler.EarlyStopping(patience=3)
    manager.get_hyparams()
    late = hostler.EarlyStopping(mode="max", patience=5)
    manager.track_model(Model())
    for value in (1.0, 2.0, 3.0):
        stopping.stop(value)
        late.stop(-value)
    manager.save_progress()
    interrupted(manager)
    again = Manager.create_manager(hyparams={"lr": 1})
    again.get_hyparams()
    restored = hostler.EarlyStopping(mode="max", patience=5)
    assert restored.state_dict() == late.state_dict()
    assert restored.bad == 2


def test_more_can_be_tracked_by_name() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    manager.track(teacher=Model(3.0))
    manager.track_model(Model())
    manager.save_progress()
    interrupted(manager)
    teacher = Model()
    Manager.create_manager(hyparams={"lr": 1}).track(teacher=teacher)
    assert teacher.weights == [3.0, 3.0]


# add_progress, set_compare_goal, finished


def train(goal: str, values: list[float]) -> dict[str, Any]:
    """What is kept of a trial whose weights are the number of the epoch."""
    manager = Manager.create_manager(hyparams={"goal": goal})
    model = Model()
    manager.set_compare_goal("score", goal)
    manager.track_model(model)
    output = manager._run.output_dir  # type: ignore[union-attr]
    kept: dict[str, Any] = {}
    original = type(manager._run).finish

    def finish(self: Any, **summary: Any) -> None:
        kept.update(json.loads((output / "params.json").read_text()), **summary)
        original(self, **summary)

    for epoch, value in enumerate(values):
        model.weights = [epoch]
        manager.add_progress("score", value)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(manager._run), "finish", finish)
        manager.finished()
    return kept


def test_the_goal_min_keeps_the_best_and_not_the_worst() -> None:
    """right: A keeps the worst for min."""
    assert train("min", [3.0, 1.0, 2.0]) == {"w": [1], "best": 1.0}


def test_the_goal_max_keeps_the_highest() -> None:
    assert train("max", [3.0, 5.0, math.nan, 2.0]) == {"w": [1], "best": 5.0}


def test_the_best_so_far_survives_a_restart() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    manager.set_compare_goal("score", "min")
    model = Model()
    manager.track_model(model)
    for weights, score in (([1.0], 0.5), ([2.0], 0.1), ([3.0], 0.9)):
        model.weights = weights
        manager.add_progress("score", score)
    manager.save_progress()
    interrupted(manager)
    again = Manager.create_manager(hyparams={"lr": 1})
    again.set_compare_goal("score", "min")
    again.track_model(Model())
    again.add_progress("score", 0.2)
    assert again._trial.best is not None and again._trial.best.value == 0.1
    assert again._trial.best_weights == {"w": [2.0]}


def test_an_unknown_goal_is_refused() -> None:
    with pytest.raises(UsageError, match="neither 'max' nor 'min'"):
        Manager.create_manager(hyparams={"lr": 1}).set_compare_goal("loss", "least")


def test_what_is_compared_must_be_a_number() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    manager.set_compare_goal("loss", "min")
    with pytest.raises(UsageError, match="loss is compared"):
        manager.add_progress("loss", "low")


def test_progress_becomes_curves_of_the_run() -> None:
    manager = Manager.create_manager(hyparams={"lr": 1})
    manager.track_model(Model())
    for epoch in range(3):
        manager.add_progress("epochs", epoch)
        manager.add_progress("loss", 1.0 - epoch)
    manager.finished()
    assert curves()["loss"] == [1.0, 0.0, -1.0]


def test_given_weights_are_what_finished_keeps(handed: Handoff) -> None:
    manager = Manager.create_manager()
    manager.track_model(Model(1.0))
    manager.finished({"w": [42.0]})
    assert json.loads((handed.output / "params.json").read_text()) == {"w": [42.0]}
    assert handed.finished.exists()


# the test double


def test_test_double_passes_a_whole_trial_and_leaves_nothing(here: Path) -> None:
    before = sorted(path.name for path in here.iterdir())
    seen = []

    def run(manager: TestManager) -> None:
        model = Model()
        manager.set_compare_goal("loss", "min")
        manager.track_model(model)
        for epoch in range(manager.start_epoch(), 3):
            manager.add_progress("epochs", epoch)
            manager.add_progress("loss", 1 / (epoch + 1))
            manager.save_progress()
        seen.append((manager.get_hyparams(), manager.get_progress()["epochs"], manager.get_cur_max_iter()))
        manager.finished()

    TestManager.create_manager({"lr": 1}).hyparam_search(run)
    assert seen == [({"lr": 1}, [0, 1, 2], (0, 1))]
    assert sorted(path.name for path in here.iterdir()) == before


def test_the_test_double_refuses_what_the_manager_refuses() -> None:
    manager = TestManager.create_manager({"lr": 1})
    with pytest.raises(UsageError, match="called without weights"):
        manager.save_progress()
    with pytest.raises(UsageError, match="cannot be tracked"):
        manager.track_model(object())


def test_the_test_double_has_every_word_of_the_manager() -> None:
    words = {name for name in dir(Manager) if not name.startswith("_")}
    assert words <= {name for name in dir(TestManager) if not name.startswith("_")}


# the best weights and the rank of the run


def test_manager_tells_of_the_weights_that_it_keeps(handed: Handoff) -> None:
    manager = Manager.create_manager()
    manager.set_compare_goal("acc", "maximize")
    manager.track_model(Model())
    for value in (0.2, 0.9, 0.4):
        manager.add_progress("acc", value)
    assert handoff.read(handed.best) == {"acc": {"goal": "max", "value": 0.9, "step": 1}}
    manager.finished({"w": [3.0]})  # the run's result is other weights than the best
    assert handoff.read(handed.best) == {}


def test_manager_without_weights_tells_of_none(handed: Handoff) -> None:
    manager = Manager.create_manager()
    manager.set_compare_goal("acc", "max")
    manager.add_progress("acc", 0.9)
    assert handoff.read(handed.best) is None
