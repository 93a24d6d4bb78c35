"""What is given to qsub and bsub, word for word; their queues as data; and what a worker asks of its job.

The answers of PBS and LSF are written after their manuals: neither runs on this machine.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hostler.backends import registry, scheduler
from hostler.backends.base import Launch, PartlyStarted
from hostler.backends.lsf import backend as lsf
from hostler.backends.lsf.host import LsfHost
from hostler.backends.pbs import backend as pbs
from hostler.backends.pbs.host import PbsHost
from hostler.backends.scheduler import LEAVES, RUNS, WAITS, SchedulerBackend, Task
from hostler.backends.sge import backend as sge
from hostler.backends.terminal import Ran
from hostler.errors import MachineError
from hostler.spec.job import Resources
from hostler.spec.project import Fleet

GOLDEN = Path(__file__).parents[2] / "golden"
NAMES = ("sge", "pbs", "lsf")
OPTIONS = {"queue": "long", "project": "vision", "time": 86400.0, "header": ("module load cuda",)}
ASKED = Resources(cpus=4, gpus=1, memory=16 * 10**9)
LAUNCH = Launch(store="/data/my store", sweeps=("lr-search",), python="python3", runs=200,
                logs="/data/my store/fleets/tau/logs", cache="/scratch/it's")  # fmt: skip


def fleet(name: str, workers: int = 32, **options: Any) -> Fleet:
    return Fleet("tau", name, workers, scope="cifar", options=OPTIONS | options, resources=ASKED)


class Typed:
    """A terminal that answers from a table, by the first word."""

    place = "here"

    def __init__(self, **answers: Ran | list[Ran]) -> None:
        self.answers, self.typed, self.kept = answers, list[list[str]](), dict[str, object]()

    def run(self, words: Sequence[str], given: str = "", variables: Any = (), without: Any = ()) -> Ran:
        self.typed.append(list(words))
        answer = self.answers.get(words[0], Ran(0, "ada\n" if words[0] == "id" else "", ""))
        return answer.pop(0) if isinstance(answer, list) else answer

    def make(self, folder: str) -> None: ...

    def has(self, program: str) -> bool:
        return program in self.answers

    def keep(self, name: str, kept: object) -> None:
        self.kept[name] = kept

    def forget(self, fleet: str, but: str = "") -> None:
        self.kept.clear()


def on(name: str, **answers: Ran | list[Ran]) -> tuple[SchedulerBackend, Typed]:
    made, terminal = registry.backend(name), Typed(**answers)
    made.terminal = terminal  # type: ignore[attr-defined]
    return made, terminal  # type: ignore[return-value]


@pytest.mark.parametrize("name", NAMES)
def test_plan_is_word_for_word_what_is_submitted(name: str) -> None:
    assert registry.backend(name).plan(fleet(name), LAUNCH).text == (GOLDEN / f"{name}_plan.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("store", ["/a b/it's", "/$(touch x)/`y`;z", "/tab\there\nand there"])
def test_any_path_reaches_worker_and_log_as_one_word(name: str, store: str) -> None:
    text = registry.backend(name).plan(fleet(name), Launch(store=store, logs=f"{store}/logs")).script
    assert shlex.split(text.split("exec ")[2])[3] == store
    assert f"exec >>{shlex.quote(f'{store}/logs')}/" in text


@pytest.mark.parametrize("name", NAMES)
def test_job_says_whose_it_is_and_for_which_sweeps(name: str) -> None:
    ours, other = fleet(name), Fleet("tau-2", name, scope="cifar")
    for sweeps in ((), ("7",), ("a", "b")):
        said = scheduler.name_of(ours, Launch("s", sweeps))
        assert scheduler.sweeps_of(ours, said) == sweeps and scheduler.sweeps_of(other, said) is None
        assert not said[0].isdigit() and not set(said) & set(":/@\\*? ")
    many = Launch("s", tuple(f"sweep-{n}" for n in range(1000)))
    assert scheduler.sweeps_of(ours, scheduler.name_of(ours, many)) == ()
    assert scheduler.sweeps_of(ours, "somebody's job") is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sge", ["-hold_jid", "PREVIOUS"]),
        ("pbs", ["-W", "depend=afterany:PREVIOUS"]),
        ("lsf", ["-w", "ended(PREVIOUS)"]),
    ],
)
def test_chain_is_jobs_after_one_another_and_never_requeued(name: str, words: list[str]) -> None:
    first, second = registry.backend(name).plan(fleet(name, chain=2), LAUNCH).commands
    assert list(second[-2:]) == words and first == second[:-2]
    assert ("-rn" in first) if name == "lsf" else first[first.index("-r") + 1] == "n"


def test_single_task_of_pbs_is_not_an_array() -> None:
    command = registry.backend("pbs").plan(fleet("pbs"), Launch("/s", runs=1)).commands[0]
    assert "-J" not in command


@pytest.mark.parametrize(
    ("name", "out", "job"),
    [
        ("sge", "Welcome!\n71.1-3:1\n", "71"),
        ("pbs", "71[].server\n", "71[].server"),
        ("lsf", "Job <71> is submitted to queue <normal>.\n", "71"),
    ],
)
def test_arrays_are_submitted_in_turn_and_taken_back(name: str, out: str, job: str) -> None:
    program = "bsub" if name == "lsf" else "qsub"
    made, terminal = on(name, **{program: [Ran(0, out, ""), Ran(1, "", "no more\n")]})
    with pytest.raises(PartlyStarted, match=f"refused: no more; queued before that: {job[:2]}") as error:
        made.start(made.plan(fleet(name, chain=2), LAUNCH))
    assert any(job in word for word in terminal.typed[1])
    error.value.undo()
    assert terminal.typed[-1] == ["bkill" if name == "lsf" else "qdel", job]


@pytest.mark.parametrize("name", NAMES)
def test_answer_without_an_id_is_an_error_of_one_line(name: str) -> None:
    made, _ = on(name, **{"bsub" if name == "lsf" else "qsub": Ran(0, "I am a wrapper\n", "")})
    with pytest.raises(MachineError, match="refused: I am a wrapper"):
        made.start(made.plan(fleet(name), LAUNCH))


@pytest.mark.parametrize("name", NAMES)
def test_program_that_is_missing_is_named(name: str) -> None:
    program = "bsub" if name == "lsf" else "qsub"
    made, _ = on(name, **{program: Ran(127, "", "")})
    with pytest.raises(MachineError, match=f"{program} was not found here"):
        made.start(made.plan(fleet(name), LAUNCH))


@pytest.mark.parametrize(
    ("name", "said", "todo"),
    [
        ("pbs", "qsub: Unknown queue", "set `queue`"),
        ("pbs", "qsub: Job violates queue and/or server resource limits", "lower `time`"),
        ("lsf", "long: No such queue. Job not submitted.", "set `queue`"),
        ("lsf", "LSF is down. Please wait ...", "try again later"),
        ("sge", 'Unable to run job: unknown resource "gpu".', "set `memory` or `gpu`"),
        ("sge", "something new", "`options` adds some"),
    ],
)
def test_refusal_says_what_to_do(name: str, said: str, todo: str) -> None:
    made, _ = on(name, **{"bsub" if name == "lsf" else "qsub": Ran(1, "", said)})
    with pytest.raises(MachineError) as error:
        made.start(made.plan(fleet(name), LAUNCH))
    assert todo in error.value.hint and said[:20] in error.value.message


def row(task: str, state: str, **more: str) -> dict[str, dict[str, str]]:
    return {task: {"Job_Name": "h.a~cifar~tau", "job_state": state, **more}}


def test_queue_of_pbs_is_read_from_its_json() -> None:
    jobs = row("7[].srv", "B") | row("7[1].srv", "R", exec_host="n3/0*4") | row("7[2].srv", "X")
    jobs |= row("7[3].srv", "Q", comment="Not Running: Insufficient amount of resource") | row("8.srv", "E")
    found = pbs.parse("banner\n" + json.dumps({"Jobs": jobs}))
    assert [(task.id, task.job, task.state, task.host) for task in found] == [
        ("7[1].srv", "7[].srv", RUNS, "n3"),
        ("7[3].srv", "7[].srv", WAITS, ""),
        ("8.srv", "8.srv", LEAVES, ""),
    ]
    assert found[1].words == "Not Running: Insufficient amount of resource"
    with pytest.raises(MachineError, match="JSON"):
        pbs.parse("Job id  Name  User")


def test_queue_of_lsf_is_read_by_its_fields() -> None:
    text = "banner\n7^3^DONE^n1^h^-\n"
    text += "7^1^RUN^n3^h.a~cifar~tau[1]^-\n7^2^PEND^-^h.a~cifar~tau[2]^New job is waiting;^ x;\n"
    running, waiting = lsf.parse(text)
    assert (running.id, running.state, running.host, running.name) == ("7[1]", RUNS, "n3", "h.a~cifar~tau")
    assert (waiting.id, waiting.state, waiting.words) == ("7[2]", WAITS, "New job is waiting;^ x")


def test_queue_of_grid_engine_counts_tasks_that_wait() -> None:
    rows = [("r", "1", "main.q@n1"), ("dr", "2", "main.q@n1"), ("qw", "3,5-9:2", ""), ("Eqw", "4", "")]
    body = "".join(
        f"<job_list><JB_job_number>7</JB_job_number><JB_name>h.a~c</JB_name><state>{state}</state>"
        f"<queue_name>{queue}</queue_name><tasks>{tasks}</tasks><full_job_name>h.a~cifar~tau</full_job_name>"
        "</job_list>"
        for state, tasks, queue in rows
    )
    found = sge.parse(f"<?xml version='1.0'?><job_info><queue_info>{body}</queue_info></job_info>")
    assert [(task.id, task.state, task.count) for task in found] == [
        ("7.1", RUNS, 1), ("7.2", LEAVES, 1), ("7.3", WAITS, 1), ("7.5-9:2", WAITS, 3), ("7.4", WAITS, 1),
    ]  # fmt: skip
    assert {task.name for task in found} == {"h.a~cifar~tau"} and "qmod -cj" in found[-1].words
    with pytest.raises(MachineError, match="cannot be read"):
        sge.parse("<?xml version='1.0'?><job_info>")


def test_stop_signals_what_runs_and_removes_what_waits() -> None:
    text = "7^1^RUN^n3^h.a~cifar~tau[1]^-\n7^2^PEND^-^h.a~cifar~tau[2]^-\n9^1^RUN^n3^h.a~cifar~other[1]^-\n"
    made, terminal = on("lsf", bjobs=Ran(0, text, ""))
    assert [one.id for one in made.stop(fleet("lsf"))] == ["7[1]", "7[2]"]
    assert terminal.typed[-2:] == [["bkill", "-s", "TERM", "7[1]"], ["bkill", "7[2]"]]
    made.stop(fleet("lsf"), now=True)
    assert terminal.typed[-1] == ["bkill", "7[1]", "7[2]"]
    jobs = row("7[1].srv", "R") | row("7[2].srv", "Q")
    made, terminal = on("pbs", qselect=Ran(0, "7[].srv\n", ""), qstat=Ran(0, json.dumps({"Jobs": jobs}), ""))
    made.stop(fleet("pbs"))
    assert terminal.typed[-2:] == [["qsig", "-s", "SIGTERM", "7[1].srv"], ["qdel", "7[2].srv"]]


def test_silent_queue_is_an_error_and_an_empty_one_not() -> None:
    made, _ = on("lsf", bjobs=Ran(255, "", "No unfinished job found\n"))
    assert made.list(fleet("lsf")) == []
    made, terminal = on("pbs")
    assert made.list(fleet("pbs")) == [] and "qstat" not in [words[0] for words in terminal.typed]
    made, _ = on("sge", qstat=Ran(1, "", "error: commlib error: got select error"))
    with pytest.raises(MachineError, match="qstat failed: error: commlib"):
        made.list(fleet("sge"))


@pytest.mark.parametrize("name", NAMES)
def test_secrets_are_kept_in_a_file_and_in_no_word(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path))
    answers = {"sge": "7.1-2:1", "pbs": "7[].s", "lsf": "Job <7> is"}
    made, terminal = on(name, **{"bsub" if name == "lsf" else "qsub": Ran(0, answers[name], "")})
    launch = Launch("s3://b", ("a",), variables={"AWS_KEY": "hidden"}, secrets={"TOKEN": "hidden"})
    terminal.answers["qstat"] = Ran(0, "<?xml version='1.0'?><a/>", "")
    plan = made.plan(fleet(name), launch)
    made.start(plan)
    assert "hidden" not in plan.text + repr(terminal.typed) and "--secrets file:" in plan.text
    [kept] = terminal.kept.values()
    assert kept.secrets == {"TOKEN": "hidden"} and kept.variables["AWS_KEY"] == "hidden"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_job_has_the_shells_variables_but_no_secret_of_it(
    name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """By a program in the place of qsub that writes down its environment, as the scheduler does."""
    says = {"sge": "7.1-2:1", "pbs": "7[].s", "lsf": "Job <7> is"}[name]
    for program in ("qsub", "bsub", "qstat", "qselect", "bjobs"):
        said = "<?xml version='1.0'?><a/>" if program == "qstat" else says if program[1:] == "sub" else ""
        (tmp_path / program).write_text(f'#!/bin/sh\nenv > {tmp_path}/{program}.env\necho "{said}"\n')
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HARMLESS", "seen")
    for variable in ("X_API_KEY", "DECLARED", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "MYSQL_PWD"):
        monkeypatch.setenv(variable, "hidden-value")
    monkeypatch.setenv("EXTRA", "hf_" + "a1" * 12)
    made = registry.backend(name)
    plan = made.plan(fleet(name), Launch("s3://b", ("a",), secrets={"DECLARED": "hidden-value"}))
    made.start(plan)
    written = (tmp_path / ("bsub.env" if name == "lsf" else "qsub.env")).read_text()
    assert "HARMLESS=seen" in written and "hidden-value" not in written and "hf_a1" not in written
    [kept] = (tmp_path / "cache" / "secrets").glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600 and f"--secrets file:{kept}" in plan.script
    found = json.loads(kept.read_text())
    assert found["secrets"] == {"DECLARED": "hidden-value"}
    assert found["variables"].keys() >= {"AWS_SECRET_ACCESS_KEY", "AWS_REGION"}


def test_many_tasks_are_named_in_few_commands() -> None:
    tasks = [Task(f"7[{n}]", "7", "", WAITS, "") for n in range(2500)]
    commands = scheduler._together([lsf.Lsf().ending(task, now=False) for task in tasks])
    assert [len(words) for words in commands] == [1001, 1001, 501]


@pytest.mark.parametrize(
    ("name", "variable"), [("sge", "JOB_ID"), ("pbs", "PBS_JOBID"), ("lsf", "LSB_JOBID")]
)
def test_host_knows_its_job_and_when_it_ends(name: str, variable: str, monkeypatch: Any) -> None:
    monkeypatch.delenv(variable, raising=False)
    outside = registry.host(name)
    assert outside.give_back() is None and outside.seconds_left() is None
    monkeypatch.setenv(variable, "71")
    monkeypatch.setenv("HOSTLER_JOB_ENDS", "1000")
    inside: Any = registry.host(name)
    assert inside.seconds_left(lambda: 990.0) == 10.0
    monkeypatch.setenv("HOSTLER_JOB_ENDS", "soon")
    assert registry.host(name).seconds_left() is None


def test_task_of_grid_engine_takes_its_notice_as_a_stop(monkeypatch: Any) -> None:
    monkeypatch.setenv("JOB_ID", "71")
    heard = list[int]()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    try:
        signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
        registry.host("sge").watch(lambda: None)
        os.kill(os.getpid(), signal.SIGUSR2)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert heard == [signal.SIGTERM]


def test_places_are_given_back_by_exit_code_or_command(tmp_path: Path, monkeypatch: Any) -> None:
    assert LsfHost("7").again == 99 and LsfHost("7").give_back()
    script = tmp_path / "qrerun"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/said\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert PbsHost("7[2].srv").give_back() and (tmp_path / "said").read_text() == "7[2].srv\n"
    script.write_text("#!/bin/sh\nexit 1\n")
    assert PbsHost("7[2].srv").give_back() is False
