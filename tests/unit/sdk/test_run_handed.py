"""A run that a worker handed over, in this very process."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.errors import UsageError
from hostler.records.run import handoff
from hostler.sdk.handed import HandedHome
from hostler.sdk.leaving import Leaving


def train(
    run: Any, counter: Any, *, epochs: int = 3, steps: int = 4, stop_at: int | None = None
) -> list[Any]:
    run.track(counter=counter)
    done = []
    for epoch in run.epochs(epochs):
        for step in run.steps(steps):
            counter.n += 1
            run.log(loss=counter.n)
            done.append((epoch, step))
            if counter.n == stop_at:
                run._home.folder.request_stop("preempted")
                run._home._looked = float("-inf")
        run.log({"val/acc": epoch})
    return done


def test_a_run_under_a_worker_joins_logs_and_finishes(handed: Any, counter: Any, start: Any) -> None:
    with start({"lr": 0.1, "width": 3}) as run:
        assert (run.id, run.sweep, run.attempt, run.resumed) == ("0000000-job-abc", "job", 1, False)
        assert run.params.lr == 0.3 and run.params["width"] == 3
        assert handed.joined["pid"] == os.getpid()
        train(run, counter)
        run.finish(accuracy=0.9)
    assert handed.finished == {"accuracy": 0.9}
    losses = [(step, values["loss"]) for step, values in handed.points() if "loss" in values]
    assert losses == [(n, n + 1.0) for n in range(12)]
    assert [step for step, values in handed.points() if "val/acc" in values] == [4, 8, 12]


def test_what_a_script_chose_itself_is_left_for_its_worker(handed: Any, start: Any) -> None:
    with start({"lr": 0.1}) as run:
        run.chose(seed=7, shape={"in": 3})
        run.chose(seed=8, when="late")
    assert handoff.read(handed.folder.chosen) == {"seed": 8, "shape.in": 3, "when": "late"}


def test_the_end_of_the_with_block_finishes_the_run(handed: Any, start: Any) -> None:
    with start() as run:
        run.log(a=1)
        run.summary["note"] = "x"
    assert handed.finished == {"note": "x"}


def test_an_error_in_the_with_block_does_not_finish_it(handed: Any, start: Any) -> None:
    with pytest.raises(ZeroDivisionError), start():
        _ = 1 / 0
    assert handed.finished is None


def test_a_stop_request_saves_and_leaves_and_nothing_is_repeated(
    handed: Any, counter: Any, start: Any
) -> None:
    with pytest.raises(Leaving) as left, start() as run:
        train(run, counter, stop_at=6)
    assert left.value.code == 75 and handed.finished is None
    second = handed.again("second")
    again = type(counter)()
    with start() as run:
        assert run.resumed and run.step == 6
        done = train(run, again)
    assert done == [(1, 2), (1, 3), *((2, n) for n in range(4))] and again.n == 12
    assert [step for step, values in second.points() if "loss" in values] == [6, 7, 8, 9, 10, 11]


def test_script_that_checks_itself_and_leaves_the_block_stays_unfinished(handed: Any, start: Any) -> None:
    with start() as run:
        assert not run.should_stop
        handed.folder.request_stop("person")
        run._home._looked = float("-inf")
        assert run.should_stop and run.should_stop
    assert handed.finished is None


def test_a_finished_run_trains_nothing_again(handed: Any, counter: Any, start: Any) -> None:
    with start() as run:
        train(run, counter)
    handed.again("second")
    again = type(counter)()
    with start() as run:
        assert train(run, again) == []
    assert again.n == 12


def test_inner_save_is_made_at_the_end_of_its_iteration(handed: Any, counter: Any, start: Any) -> None:
    run = start(save_every="1d")
    run.track(counter=counter)
    steps = run.steps(10)
    for _ in range(3):
        next(steps)
        counter.n += 1
        if counter.n == 2:
            run.save(wait=True)
            counter.n += 0
    run.close(RuntimeError("killed"))
    handed.again("second")
    again = type(counter)()
    with start() as run:
        run.track(counter=again)
        assert (again.n, list(run.steps(10))) == (2, list(range(2, 10)))


def test_resume_never_begins_anew_and_must_wants_a_checkpoint(handed: Any, counter: Any, start: Any) -> None:
    with pytest.raises(UsageError, match="no checkpoint to resume from"):
        start(resume="must")
    with pytest.raises(Leaving), start() as run:
        train(run, counter, stop_at=2)
    handed.again("second")
    with start(resume="never") as run:
        assert not run.resumed and run.step == 0


def test_changed_parameters_are_refused_unless_told(handed: Any, counter: Any, start: Any) -> None:
    with pytest.raises(Leaving), start({"width": 3, "epochs": 5}) as run:
        train(run, counter, stop_at=2)
    handed.again("second")
    with pytest.raises(UsageError, match=r"width was 3, is 4.*allow_changed=\['width'\]"):
        start({"width": 4, "epochs": 5})
    with start({"width": 4, "epochs": 5}, allow_changed=["width"]) as run:
        assert run.resumed


def test_the_best_state_is_kept_with_the_outputs(handed: Any, counter: Any, start: Any) -> None:
    with start() as run:
        run.track(counter=counter)
        run.keep_best("acc", "max")
        for epoch in run.epochs(5):
            counter.n = epoch
            run.log(acc=-abs(epoch - 2))
        assert run.best == {"acc": 0.0}
    kept = handed.folder.output / "best" / "acc"
    assert (kept / "COMMIT").exists() and '"n": 2' in (kept / "state-0000.json").read_text()


def test_best_is_found_in_nested_metrics_despite_non_numbers(handed: Any, counter: Any, start: Any) -> None:
    with start() as run:
        run.track(counter=counter)
        run.keep_best("val/acc", "max")
        for value in (0.5, 10**400, "high", None):
            run.log({"val": {"acc": value}})
            run.log({"val/acc": value}, step=float("inf"))
        assert run.best == {"val/acc": 0.5}


def test_the_best_so_far_survives_a_resume(handed: Any, counter: Any, start: Any) -> None:
    with pytest.raises(Leaving), start() as run:
        run.keep_best("loss", "min")
        train(run, counter, stop_at=3)
    handed.again("second")
    with start() as run:
        run.keep_best("loss", "min")
        assert run.best == {"loss": 1.0}
        train(run, type(counter)())
        assert run.best == {"loss": 1.0}


def test_second_start_in_one_process_fails_until_the_first_finishes(handed: Any, start: Any) -> None:
    run = start()
    with pytest.raises(UsageError, match=r"still open.*finish\(\)"):
        start()
    run.finish()
    with start() as again:
        again.log(a=1)
    assert [values for _, values in handed.points()] == [{"a": 1.0}]


def test_the_next_run_in_the_same_process_starts_clean(
    handed: Any, counter: Any, start: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with start() as run:
        run.keep_best("loss")
        train(run, counter)
    monkeypatch.setenv("HOSTLER_DIR", str(tmp_path / "next"))
    monkeypatch.setenv("HOSTLER_RUN", "0000001-job-def")
    handed.folder.__class__(tmp_path / "next").make({})
    fresh = type(counter)()
    with start() as run:
        assert not run.resumed and run.step == 0 and run.best == {} and run.summary == {}
        assert len(train(run, fresh)) == 12 and fresh.n == 12


@pytest.mark.parametrize(
    "method", ["log", "epochs", "steps", "track", "save", "keep_best", "artifact", "finish"]
)
def test_use_after_finish_is_a_clear_error(handed: Any, start: Any, method: str) -> None:
    run = start()
    run.finish()
    words = {"epochs": (1,), "steps": (1,), "keep_best": ("a",), "artifact": ("x",)}.get(method, ())
    with pytest.raises(UsageError, match=rf"{method}: 0000000-job-abc is closed by finish\(\)"):
        getattr(run, method)(*words)


def test_a_forked_child_neither_logs_nor_ends_the_parents_run(handed: Any, start: Any) -> None:
    run = start()
    run.log(a=1)
    pid = os.fork()
    if pid == 0:
        run.log(a=2)  # dropped, and said: a data set may do it
        try:
            run.save()
            os._exit(1)
        except UsageError as error:
            os._exit(0 if "fork" in str(error) else 2)
    assert os.waitpid(pid, 0)[1] == 0
    run.log(a=3)
    assert handed.finished is None
    run.finish()
    assert [values["a"] for _, values in handed.points()] == [1.0, 3.0]


def test_second_process_of_a_run_is_refused_beside_the_first(handed: Any, start: Any) -> None:
    run = start()
    pid = os.fork()
    if pid == 0:
        try:
            start()
            os._exit(1)
        except UsageError as error:
            os._exit(0 if "has started 0000000-job-abc already" in str(error) else 2)
    assert os.waitpid(pid, 0)[1] == 0
    run.log(a=1)
    run.finish()
    assert [values for _, values in handed.points()] == [{"a": 1.0}]


def test_an_artifact_is_copied_into_the_outputs(handed: Any, start: Any, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "a.txt").write_text("a")
    with start() as run:
        assert run.artifact(tmp_path / "made" / "a.txt").read_text() == "a"
        run.artifact(tmp_path / "made", "folder/of/them")
        run.artifact(run.output_dir / "a.txt")
        with pytest.raises(UsageError, match="does not exist"):
            run.artifact(tmp_path / "missing")
        with pytest.raises(UsageError, match="outside the output folder"):
            run.artifact(tmp_path / "made", "../../x")
    assert (handed.folder.output / "folder/of/them/a.txt").read_text() == "a"


def test_a_folder_that_cannot_be_written_to_harms_nothing(handed: Any, start: Any) -> None:
    handed.folder.metrics.mkdir()
    with start() as run:
        run.log(a=1)
    assert handed.finished == {}


def test_a_sigterm_inside_a_loop_saves_and_leaves(handed: Any, counter: Any, start: Any) -> None:
    with pytest.raises(Leaving) as left, start() as run:
        run.track(counter=counter)
        for _ in run.steps(10):
            counter.n += 1
            if counter.n == 3:
                signal.raise_signal(signal.SIGTERM)
            assert counter.n <= 3
    assert left.value.code == 75 and counter.n == 3
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    handed.again("second")
    with start() as run:
        assert run.step == 3


def test_a_handler_of_the_scripts_own_is_left_alone(handed: Any, start: Any) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with start() as run:
            for _ in run.steps(2):
                signal.raise_signal(signal.SIGTERM)
        assert heard == [1, 1]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_looking_for_a_stop_request_is_cheap(tmp_path: Path) -> None:
    now = [0.0]
    home = HandedHome(tmp_path, ("r", "s", 1), clock=lambda: now[0])
    assert home.stop_reason() is None
    home.folder.request_stop("preempted")
    assert home.stop_reason() is None  # looked a moment ago
    now[0] = 1.0
    assert home.stop_reason() == "preempted"


def test_a_loader_hidden_in_an_iterator_is_refused(handed: Any, start: Any) -> None:
    torch = servers.library("torch")
    loader = torch.utils.data.DataLoader([1, 2, 3])
    with start() as run:
        run.track(loader=loader)
        with pytest.raises(UsageError, match=r"enumerate\(run.steps\(loader\)\)"):
            run.steps(enumerate(loader))


def test_loader_in_a_plain_loop_makes_no_checkpoint_mid_epoch(
    handed: Any, start: Any, torch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data = torch.utils.data
    loader = data.DataLoader(data.TensorDataset(torch.arange(8.0)), batch_size=2, shuffle=True)
    with start(save_every=0.0001) as run:
        run.track(loader=loader)
        for _epoch in range(2):
            for _batch in loader:
                pass
        assert not list(handed.folder.checkpoint.glob("step-*"))
    assert capsys.readouterr().err.count("use `for epoch in run.epochs(n)`, which resumes") == 1


def test_a_run_that_goes_on_inside_an_epoch_says_where(
    handed: Any, start: Any, torch: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    model, data = torch.nn.Linear(1, 1), torch.arange(8.0).reshape(8, 1)

    def train(stop: int | None) -> None:
        loader = torch.utils.data.DataLoader(data)
        with start() as run:
            run.track(model=model, loader=loader)
            for _ in run.epochs(2):
                for x in loader:
                    if stop is not None and x.item() == stop:
                        run._home.folder.request_stop("preempted")
                        run._home._looked = float("-inf")

    with pytest.raises(Leaving):
        train(3)
    assert "saved at step 0 (in epoch 0: batch 4 of loader), stops" in capfd.readouterr().err
    handed.again("second")
    train(None)
    assert "goes on from step 0 (in epoch 0: batch 4 of loader)\n" in capfd.readouterr().err


def test_run_that_begins_anew_keeps_only_its_own_checkpoints(handed: Any, counter: Any, start: Any) -> None:
    with pytest.raises(Leaving), start() as run:
        run.keep_best("loss", "max")
        train(run, counter, stop_at=9)
    (run.checkpoint_dir / "mine.txt").write_text("own")
    second = handed.again("second")
    fresh = type(counter)()
    with pytest.raises(Leaving), start(resume="never") as run:
        run.keep_best("loss", "max")
        assert len(train(run, fresh, stop_at=2)) == 2
    assert (run.checkpoint_dir / "mine.txt").read_text() == "own"
    second.again("third")
    again = type(counter)()
    with start() as run:
        assert run.resumed and run.step == 2 and run.best == {"loss": 2.0}
        train(run, again)
    assert again.n == 12


def test_artifact_without_a_name_is_called_like_its_folder(
    handed: Any, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "a.txt").write_text("x")
    monkeypatch.chdir(tmp_path / "plots")
    with start() as run:
        assert run.artifact(".") == run.output_dir / "plots"
        assert (run.output_dir / "plots" / "a.txt").read_text() == "x"


def test_a_count_may_be_a_number_of_any_library(handed: Any, start: Any, torch: Any, np: Any) -> None:
    with start() as run:
        assert list(run.epochs(np.int64(2))) == list(run.steps(torch.tensor(2))) == [0, 1]
        assert list(run.steps(np.array([5, 6]))) == [5, 6]


def test_value_a_script_remembers_returns_such_as_a_trackers_id(
    handed: Any, counter: Any, start: Any
) -> None:
    with pytest.raises(Leaving), start() as run:
        run.memory["tracker"] = {"id": "x7", 3: (1, b"k")}
        train(run, counter, stop_at=3)
    handed.again("second")
    with start() as run:
        assert run.memory == {"tracker": {"id": "x7", 3: (1, b"k")}}


@pytest.mark.parametrize(("put_off", "wanted"), [(0, [4, 8, 12]), (2, [6, 10]), (9, [8])])
def test_checkpoint_of_an_epoch_waits_for_steps_of_the_next(
    handed: Any, counter: Any, start: Any, put_off: int, wanted: list[int]
) -> None:
    with start() as run:
        saved, real = list[int](), run._keeper.save

        def save(*given: Any, **words: Any) -> None:
            saved.append(counter.n)
            real(*given, **{**words, "wait": True})
            run._keeper._cost = 0.0

        run._keeper.save = save
        run._saves_inside(put_off)
        train(run, counter)
        assert saved == wanted
