"""A sweep file to data; every mistake one line with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostler.backends.project_file import load_project, load_sweep, schemas
from hostler.errors import MissingError, SpecError, UsageError
from hostler.spec.files.sweepfile import SweepFile
from hostler.spec.job import Budget, Objective
from hostler.spec.project import Project, default_project

BASE = "command: python train.py\nparameters: {lr: [0.1, 0.2]}\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return default_project(tmp_path)


def read(project: Project, text: str, name: str = "search.yaml") -> SweepFile:
    path = project.root / name
    path.write_text(text)
    return load_sweep(path, project)


def complaint(project: Project, text: str) -> str:
    with pytest.raises(SpecError) as error:
        read(project, text)
    return str(error.value)


def test_a_file_needs_little(project: Project) -> None:
    file = read(project, BASE)
    assert file.name == "search"
    assert file.method == "grid"
    assert file.project.command == ("python", "train.py")
    assert file.parameters == {"lr": [0.1, 0.2]}
    assert file.objectives == ()


@pytest.mark.parametrize("name", ["train.py", "job.sh"])
def test_script_given_as_a_sweep_gets_a_hint(project: Project, name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is a script") as said:
        load_sweep(project.root / name, project)
    assert said.value.hint.startswith(f"hostler run {name} runs it once")


def test_all_that_a_file_may_say(project: Project) -> None:
    file = read(
        project,
        """
name: lr-search
command: python train.py
metric: {name: val/accuracy, goal: min}
method: random
parameters: {lr: {min: 1e-5, max: 1e-1, log: true}}
repeat: 3
seed: 7
prune: asha
budget: {runs: 200, hours: 12, cost: 50}
parallel: 8
""",
    )
    assert (file.name, file.method, file.repeat, file.seed, file.parallel) == ("lr-search", "random", 3, 7, 8)
    assert file.objectives == (Objective("val/accuracy", "min"),)
    assert file.budget == Budget(200, 12, 50)
    assert file.prune == {"method": "asha"}
    assert (file.project.metric, file.project.goal) == ("val/accuracy", "min")


def test_json_is_read_too(project: Project) -> None:
    value = {"command": "python train.py", "parameters": {"lr": [1]}, "metric": "acc"}
    file = read(project, json.dumps(value), "s.json")
    assert file.name == "s"
    assert file.objectives == (Objective("acc", "max"),)


def test_several_metrics_each_with_its_goal(project: Project) -> None:
    file = read(project, BASE + "metric: [acc, {name: loss, goal: min}]\n")
    assert file.objectives == (Objective("acc", "max"), Objective("loss", "min"))
    assert file.project.metric == "acc"


def test_keys_of_the_project_stand_where_the_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "hostler.yaml").write_text(
        "command: python train.py\nmetric: acc\ngoal: min\nlimits: {time: 1h, hang: 5m}\n"
        "env: {A: 1, B: 2}\nfleets: {desk: {backend: local}}\n"
    )
    base = load_project(tmp_path / "hostler.yaml")
    text = "parameters: {lr: [1]}\nlimits: {time: 2h}\nenv: {B: 3}\nfleet: desk\n"
    file = read(base, text)
    assert file.project.command == ("python", "train.py")
    assert file.objectives == (Objective("acc", "min"),)
    assert (file.project.limits.time, file.project.limits.hang) == (7200, 300)
    assert file.project.env == {"A": "1", "B": "3"}
    assert file.project.fleet == "desk"
    assert file.project.name == base.name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "command: x\nparametrs: {a: 1}\n",
            "search.yaml:2: no such key 'parametrs' (did you mean 'parameters'?)",
        ),
        (BASE + "n_trials: 12\n", "no such key 'n_trials' (write budget: {runs: N})"),
        (BASE + "search: random\n", "no such key 'search' (write method: grid, random, tpe, …)"),
        (
            BASE + "gpus: 1\n",
            "no such key 'gpus' (write resources: {gpus: 1, cpus: 4, memory: 16GB})",
        ),
        (BASE + "method: gird\n", "search.yaml:3: method: 'gird' is not"),
        (
            "name: x\ncommand: p\nspace: {a: [1]}\n",
            "search.yaml:3: no such key 'space' (write parameters: {lr: [0.1, 0.01]})",
        ),
        (BASE + "budget: {run: 3}\n", "search.yaml:3: budget: no such key 'run' (did you mean 'runs'?)"),
        (BASE + "budget: {hours: 0}\n", "search.yaml:3: budget.hours: must be more than 0"),
        (BASE + "parallel: 0\n", "search.yaml:3: parallel: must be at least 1"),
        (BASE + "parallel: many\n", "search.yaml:3: parallel: 'many' is neither a number of runs nor auto"),
        (BASE + "parallel: true\n", "search.yaml:3: parallel: True is neither a number of runs nor auto"),
        (BASE + "prune: ashah\n", "did you mean 'asha'?"),
        (BASE + "metric: {nam: x}\n", "search.yaml:3"),
        ("command: x\n", "parameters: is missing"),
        ("parameters: {a: [1]}\n", "no command here or in hostler.yaml"),
        ("- 1\n", "not a table"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(project: Project, text: str, said: str) -> None:
    line = complaint(project, text)
    assert said in line
    assert "\n" not in line


def test_a_file_that_is_not_there_is_said(project: Project) -> None:
    with pytest.raises(MissingError):
        load_sweep(project.root / "none.yaml", project)


def test_there_is_a_schema_for_editors() -> None:
    assert {"parameters", "method", "budget", "command"} <= set(schemas()["sweep.yaml"]["properties"])


def test_parallel_auto_is_read_beside_numbers(project: Project) -> None:
    auto, number = read(project, BASE + "parallel: auto\n"), read(project, BASE + "parallel: 3\n")
    assert (auto.parallel, auto.auto) == (None, True)
    assert (number.parallel, number.auto) == (3, False)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("metric: acc", Objective("acc", "max", "kept")),
        ("metric: acc\ngoal: minimize", Objective("acc", "min", "kept")),
        ("metric: {name: acc, goal: maximize, of: last}", Objective("acc", "max", "last")),
        ("metric: {name: acc, goal: min, of: {mean: 5}}", Objective("acc", "min", "mean:5")),
    ],
)
def test_metric_has_goal_and_rule(project: Project, text: str, meant: Objective) -> None:
    found = read(project, f"command: x\nparameters: {{lr: [1]}}\n{text}\n")
    assert found.objectives == (meant,)
    assert (found.project.metric, found.project.goal, found.project.of) == ("acc", meant.goal, meant.of)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "metric: {name: acc, of: median}",
            "metric.of: 'median' is not a value to rank by: use kept, best, last or {mean: 5}",
        ),
        (
            "method: bayes",
            "search.yaml:3: method: bayes is not a method here: use tpe, or gp for a Gaussian process",
        ),
        ("metric: acc\nmethod: bayes\nbudget: {runs: 9}", "bayes is not a method here: use tpe"),
    ],
)
def test_unknown_rule_or_method_says_what_is_meant(project: Project, text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(project, f"command: x\nparameters: {{lr: [1]}}\n{text}\n")
    assert said in str(caught.value)


def test_goal_of_another_tool_does_not_make_it_theirs(project: Project) -> None:
    text = "command: x\nmetric: {name: a, goal: maximize}\nparameters: {lr: {min: 1, max: 2}}\n"
    theirs, ours = (
        read(project, text),
        read(project, text + "parallel: 2\nbudget: {runs: 2}\nmethod: random\n"),
    )
    assert theirs.objectives == ours.objectives == (Objective("a", "max"),)
    assert ours.parallel == 2 and not ours.notes
