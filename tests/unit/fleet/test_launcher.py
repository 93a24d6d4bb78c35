"""Workers that could be started only in part: left, or taken back if asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hostler.backends.base import Capabilities, Launch, MachinePaces, PartlyStarted, Plan, WorkerInfo
from hostler.errors import HostError, MachineError
from hostler.fleet.launcher import Launcher
from hostler.fleet.machine_choice import as_learned, scouted
from hostler.fleet.secrets import check_told
from hostler.records.launch import launches
from hostler.records.run.entries import Claim, Outcome, Release
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import measured_rates, sweeps
from hostler.records.sweep.measured_rates import MeasuredRate
from hostler.spec.job import Job, Notify, Source
from hostler.spec.project import Fleet, default_project
from hostler.store import open_store
from hostler.worker.prepare import secrets


@pytest.fixture(autouse=True)
def grid(tmp_path: Path) -> None:
    """The sweep that workers are wanted for."""
    job = Job(name="grid", command=("x",), notify=Notify(to=("HOOK", "UNSET")))
    assert sweeps.submit(open_store(str(tmp_path / "s")), job)


class Half:
    """Starts some, and refuses the rest."""

    capabilities = Capabilities(restarts=True, shares_disk=True, shared=True)

    def __init__(self) -> None:
        self.undone = 0

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        return Plan(fleet, ())

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return ()

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        raise PartlyStarted("no more; queued before that: 70", "ask; scancel 70 does it", (_70,), self._undo)

    def _undo(self) -> None:
        self.undone += 1


_70 = WorkerInfo("70", "tau", True)


@pytest.mark.parametrize("yes", [False, True])
def test_what_was_started_is_cancelled_only_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], yes: bool
) -> None:
    engine, questions = Half(), list[str]()

    def take_back(question: str) -> bool:
        questions.append(question)
        return yes

    workers = Launcher(default_project(tmp_path), str(tmp_path / "s"), Fleet("tau", "slurm"), engine)  # type: ignore[arg-type]
    with pytest.raises(MachineError) as error:
        replace(workers, take_back=take_back).start_missing(["grid"], 5)
    assert questions == ["no more; queued before that: 70. Cancel what is queued (70)?"]
    assert "grid is in the store and waits" in capsys.readouterr().err
    assert engine.undone == yes
    assert ("that is cancelled" in str(error.value)) == yes and ("scancel 70" in str(error.value)) == (
        not yes
    )


def test_a_program_that_was_not_asked_leaves_what_is_queued(tmp_path: Path) -> None:
    engine = Half()
    workers = Launcher(default_project(tmp_path), str(tmp_path / "s"), Fleet("tau", "slurm"), engine)  # type: ignore[arg-type]
    with pytest.raises(PartlyStarted):
        workers.start_missing(["grid"], 5)
    assert not engine.undone


@pytest.mark.parametrize(("error", "stays"), [(KeyError("a bug"), False), (KeyboardInterrupt(), True)])
def test_launch_ended_by_a_bug_is_over(tmp_path: Path, error: BaseException, stays: bool) -> None:
    class Broken(Half):
        def plan(self, fleet: Fleet, launch: Launch) -> Plan:
            return Plan(fleet, (), workers=2)

        def start(self, plan: Plan) -> Sequence[WorkerInfo]:
            raise error

    fleet = Fleet("tau", "slurm", workers=2, price=1.0)
    workers = Launcher(default_project(tmp_path), str(tmp_path / "s"), fleet, Broken())  # type: ignore[arg-type]
    with pytest.raises(type(error)):
        workers.start(["grid"], 5)
    store = open_store(str(tmp_path / "s"))
    [launch] = launches.of_fleet(store, "tau")
    assert (launches.gone_at(store, "tau", launch.number) is None) == stays


def test_new_sweep_does_not_ask_the_queue(tmp_path: Path) -> None:
    class Listening(Half):
        asked = 0

        def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
            self.asked += 1
            return (WorkerInfo("7", "tau", True, count=5, sweeps=("grid",)),)

        def start(self, plan: Plan) -> Sequence[WorkerInfo]:
            return (_70,)

    engine = Listening()
    workers = Launcher(default_project(tmp_path), str(tmp_path / "s"), Fleet("tau", "slurm"), engine)  # type: ignore[arg-type]
    assert workers.start_missing(["grid"], 5, new=True) == [_70] and engine.asked == 0
    assert workers.start_missing(["grid"], 5) == () and engine.asked == 1
    assert workers.start_missing(["grid"], 6) == [_70]


def test_workers_elsewhere_are_given_notice_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Far(Half):
        capabilities = Capabilities(restarts=True)

    class Near(Half):
        capabilities = Capabilities(restarts=True, shares_disk=True)

    monkeypatch.setenv("HOOK", "https://x")
    monkeypatch.setenv("KEY", "hush")
    job = Job(name="grid", command=("x",), secrets=("KEY",), notify=Notify(to=("HOOK", "UNSET")))
    for engine, given in ((Far(), {"KEY": "hush", "HOOK": "https://x"}), (Near(), {})):
        fleet, url = Fleet("lab", "ssh"), str(tmp_path / "s")
        workers = Launcher(default_project(tmp_path), url, fleet, engine)  # type: ignore[arg-type]
        assert workers.hidden([job]) == given
        assert "hush" not in repr(workers.launch(["grid"], hidden=given))


def test_git_token_goes_to_machines_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Far(Half):
        capabilities = Capabilities(restarts=True)

    monkeypatch.setenv("GIT_KEY", "hush")
    source = Source(git="https://x.example/me/code", ref="0" * 40, token_secret="GIT_KEY")
    job = Job(name="grid", command=("x",), source=source)
    url = str(tmp_path / "s")
    workers = Launcher(default_project(tmp_path), url, Fleet("lab", "ssh"), Far())  # type: ignore[arg-type]
    assert workers.hidden([job]) == {"GIT_KEY": "hush"} and job.wanted == ("GIT_KEY",)
    assert replace(job, secrets=("GIT_KEY",)).wanted == ("GIT_KEY",)
    monkeypatch.delenv("GIT_KEY")
    with pytest.raises(MachineError, match="the secret GIT_KEY is not set on this machine"):
        secrets.check(job)


def test_a_sweep_that_nobody_will_be_told_of_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    check_told(["HOOK"])
    assert "no notice will be sent: HOOK" in capsys.readouterr().err
    monkeypatch.setenv("HOOK", "https://example.test")
    check_told(["HOOK"])
    check_told([])
    assert capsys.readouterr().err == ""


def test_launch_of_which_no_worker_started_is_an_error(tmp_path: Path) -> None:
    class Refused(Half):
        def start(self, plan: Plan) -> Sequence[WorkerInfo]:
            return [WorkerInfo("n1", "n1", False, "n1 cannot use the store: denied")]

    workers = Launcher(default_project(tmp_path), str(tmp_path / "s"), Fleet("lab", "ssh"), Refused())  # type: ignore[arg-type]
    with pytest.raises(HostError, match="no worker was started: n1 cannot use the store: denied"):
        workers.start(["grid"], 1)


class Chooses(Half):
    """Chooses machines by what is known of the fleet."""

    def informed(self, fleet: Fleet, buckets: Sequence[str]) -> Fleet:
        return fleet


class LeavesOpen(Chooses):
    """Leaves it open which of two machines a fleet gets."""

    def machines(self, fleet: Fleet) -> Mapping[str, Fleet]:
        return {name: replace(fleet, name=f"{fleet.name}:{name}") for name in ("T4", "L4")}


@pytest.mark.parametrize(("steps", "work", "seconds"), [(100, "a run", 30.0), (None, "1000 steps", 250.0)])
def test_launch_knows_what_scouts_measured_on_each_machine(
    tmp_path: Path, steps: int | None, work: str, seconds: float
) -> None:
    store, project = open_store(str(tmp_path / "s")), default_project(tmp_path)
    job = Job(name="grid", command=("x",))
    one = Launcher(project, store.url, Fleet("cheap", "local"), LeavesOpen())
    assert "paces" not in as_learned(one, store, [job]).fleet.known
    for name in ("T4", "L4", "A100"):
        rate = MeasuredRate(f"cheap:{name}", 2.0, warm=10.0, steps=steps, seats=2)
        measured_rates.write(store, "grid", rate)
    found = as_learned(one, store, [job])
    assert found.fleet.known["paces"] == MachinePaces(work, {"T4": seconds, "L4": seconds})
    assert [each.fleet.name for each in scouted(found)] == ["cheap:T4", "cheap:L4"]
    assert "paces" not in as_learned(one, store, [job, job]).fleet.known  # of which of them?
    assert scouted(one) == []


def test_launch_passes_by_gpus_that_all_open_runs_outgrew(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "s"))
    job = Job(name="large", command=("x",), runs=({"n": 1}, {"n": 2}))
    assert sweeps.submit(store, job)
    fleet, project = Fleet("burst", "local"), default_project(tmp_path)

    def known() -> int:
        one = as_learned(Launcher(project, store.url, fleet, Chooses()), store, [job])
        return int(one.fleet.known["outgrown"])

    def outgrows(index: int) -> None:
        log = RunLog(store, RunKey("large", job.run_id(index)))
        assert log.append(Claim("me").record())
        assert log.append(Release(1, Outcome("queued", outgrew=16)).record())

    assert known() == 0
    outgrows(0)
    assert known() == 0  # the other one may fit
    outgrows(1)
    assert known() == 16
    assert not as_learned(Launcher(project, store.url, fleet, Half()), store, [job]).fleet.known
