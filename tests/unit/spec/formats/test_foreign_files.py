from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.backends.project_file import load_sweep, parse_project
from hostler.errors import SpecError
from hostler.spec.files.yaml12 import Document, load
from hostler.spec.formats.foreign import Foreign
from hostler.spec.formats.machines import recognise as machines
from hostler.spec.formats.reading import as_ours, recognise
from hostler.spec.formats.writing import to_yaml
from hostler.spec.project import default_project
from hostler.spec.space import Space, parse


def read(text: str | dict[str, Any], name: str = "file.json") -> Foreign:
    document = load(text if isinstance(text, str) else json.dumps(text), name)
    found = recognise(document, "stem")
    assert found is not None
    return found


def space_of(found: Foreign) -> Space:
    """By the text that is written for it, as the reader of a file would have it."""
    value = load(to_yaml(found.sweep), "ours.yaml").value
    assert value == json.loads(json.dumps(found.sweep))
    budget = value.get("budget", {}).get("runs")
    sections = value.get("sections", ())
    return parse(value["parameters"], method=value["method"], runs=budget, sections=sections)


def trials(*sections: dict[str, Any], iterations: int = 4) -> list[dict[str, Any]]:
    found = read({"iterations": iterations, "hyperparameters": list(sections), "helper": "how to"})
    space = space_of(found)
    assert found.runs == space.count == iterations * len(sections)
    return list(space.cells())


def listed(*values: Any) -> dict[str, Any]:
    return {"method": "list", "data": list(values)}


class TestCloudl:
    def test_trial_k_gets_value_k(self) -> None:
        assert [t["x"] for t in trials({"x": listed(10, 20, 30, 40)})] == [10, 20, 30, 40]

    def test_a_list_begins_again_at_its_end(self) -> None:
        assert [t["x"] for t in trials({"x": listed("a", "b")}, iterations=5)] == ["a", "b", "a", "b", "a"]

    def test_all_parameters_advance_together(self) -> None:
        found = trials(
            {
                "step": {"method": "step", "data": [1, 2]},
                "multiple": {"method": "multiple", "data": [0.001, 10]},
                "list": listed(5, 6, 7),
                "constant": "c",
            }
        )
        assert [(t["step"], t["multiple"], t["list"], t["constant"]) for t in found] == [
            *((1, 0.001, 5, "c"), (3, 0.01, 6, "c"), (5, 0.1, 7, "c"), (7, 1.0, 5, "c"))
        ]

    def test_draws_are_uniform_seeded_and_repeatable(self) -> None:
        section = {"a": [0.5, 0.1], "b": {"method": "whatever", "data": [1, 2]}}
        one, again = trials(section, iterations=50), trials(section, iterations=50)
        assert one == again
        assert len({t["a"] for t in one}) == 50
        assert all(0.1 <= t["a"] <= 0.5 and 1 <= t["b"] <= 2 for t in one)

    def test_sections_inherit_from_the_first_and_draw_on_their_own(self) -> None:
        found = trials(
            {"a": listed(1, 2), "u": [0, 1], "e": 3}, {"a": 9}, {"u": [5, 6], "e": 4}, iterations=2
        )
        assert [(t["a"], t["e"]) for t in found] == [(1, 3), (2, 3), (9, 3), (9, 3), (1, 4), (2, 4)]
        assert len({t["u"] for t in found}) == 6
        assert all(t["u"] >= 5 for t in found[4:])

    def test_a_section_knows_its_runs(self) -> None:
        space = space_of(read({"iterations": 2, "hyperparameters": [{"a": listed(1, 2)}, {}]}))
        assert [space.section_of(n) for n in range(4)] == [1, 1, 2, 2]
        assert [space.occurrence(n) for n in range(4)] == [0, 0, 1, 1]

    def test_constants_alone_are_as_many_runs_as_were_asked_for(self) -> None:
        assert trials({"a": 1, "b": "x"}, iterations=3) == [{"b": "x", "a": 1}] * 3

    def test_a_longer_bare_list_is_its_values(self) -> None:
        assert [t["x"] for t in trials({"x": [1, 2, 3]}, iterations=3)] == [1, 2, 3]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('{"iterations": 0,\n "hyperparameters": [{"a": 1}]}', "file.json:1: iterations: 0"),
            ('{"iterations": 2,\n "hyperparameters": []}', "file.json:2: hyperparameters: no sections"),
            ('{"iterations": 2,\n "hyperparameters": [3]}', r"file.json:2: hyperparameters\[0\]: 3 is not"),
            (
                '{"iterations": 2,\n "hyperparameters": [{\n"a": {"method": "step",\n"data": [1]}}]}',
                r"file.json:4: a: \[1\] is not a list of two numbers",
            ),
        ],
    )
    def test_a_mistake_is_said_with_its_line(self, text: str, said: str) -> None:
        with pytest.raises(SpecError, match=said):
            read(text)

    def test_fault_of_the_space_has_the_foreign_line(self) -> None:
        head = '{"iterations": 400,\n "hyperparameters": [{\n"b": 1,\n'
        text = head + '"a": {"method": "multiple", "data": [1.5, 1e9]}}]}'
        document, _ = as_ours(load(text, "file.json"), "stem")
        with pytest.raises(SpecError, match=r"file.json:4: .*grows beyond"):
            parse(document.value["parameters"], where=document.where)


JOB = """\
job_details:
  name: linear
  output_dir: /somewhere
parameters:
  LIST optimizer:
    - {optimizer: [sgd], lr: [0.1, 1e-2], momentum: [0, 0.9]}
    - {optimizer: [adam], lr: [0.001, 1e-3, 1e-4]}
  model: [linear, mlp]
  seed: [1, 2, 3]
  dataset: [a9a, cifar, mnist]
"""


class TestStarter:
    def test_list_of_six_times_product_of_eighteen_is_108(self) -> None:
        found = read(JOB, "job.yaml")
        space = space_of(found)
        assert (found.runs, space.count) == (108, 108)
        assert len({json.dumps(cell, sort_keys=True) for cell in space.cells()}) == 108
        assert found.sweep["name"] == "linear"
        assert space.params(0) == {
            "optimizer": "sgd",
            "lr": 0.1,
            "momentum": 0,
            "model": "linear",
            "seed": 1,
            "dataset": "a9a",
        }
        assert {type(cell["lr"]) for cell in space.cells()} == {float}

    def test_non_list_is_one_value(self) -> None:
        found = read({"job_details": {"name": "x"}, "parameters": {"a": {"min": 1, "max": 2}, "b": [1, 2]}})
        assert list(space_of(found).cells()) == [{"a": {"min": 1, "max": 2}, "b": b} for b in (1, 2)]

    def test_a_LIST_of_one_table_needs_no_list(self) -> None:
        found = read({"job_details": {"name": "x"}, "parameters": {"LIST": {"a": [1, 2]}, "b": [3]}})
        assert list(space_of(found).cells()) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]

    def test_equal_values_are_counted_there_and_run_once_here(self) -> None:
        found = read({"job_details": {"name": "x"}, "parameters": {"a": [1, 1, 2]}})
        assert (found.runs, space_of(found).count) == (3, 2)

    def test_what_is_not_carried_over_is_named(self) -> None:
        assert read(JOB, "job.yaml").notes == (
            "job_details.output_dir: runs are kept in the store;"
            " hostler pull NAME --follow --to /somewhere shows them there",
        )

    def test_it_is_a_sweep_file_as_it_stands(self, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").write_text(f"{JOB}  oops: []\n")
        project = replace(default_project(tmp_path), command=("true",))
        file = load_sweep(tmp_path / "job.yaml", project)
        assert (file.name, file.method) == ("linear", "grid")
        with pytest.raises(SpecError, match=r"job.yaml:11: parameters.oops: an empty list"):
            parse(file.parameters, where=file.where)


WANDB = """\
program: train.py
method: bayes
name: my sweep
project: p
metric: {name: val_loss}
run_cap: 30
early_terminate: {type: hyperband, max_iter: 27, s: 2}
parameters:
  lr: {distribution: log_uniform_values, min: 1e-5, max: 1e-1}
  old: {distribution: log_uniform, min: -3, max: 0}
  inverse: {distribution: inv_log_uniform_values, min: 2, max: 4}
  layers: {min: 2, max: 8}
  drop: {min: 0.0, max: 0.5}
  batch: {distribution: q_uniform, min: 16, max: 64, q: 16}
  opt:
    parameters:
      name: {values: [sgd, adam], probabilities: [0.3, 0.7]}
      betas: {value: [0.9, 0.999]}
  epochs: {value: 3}
"""


class TestWandb:
    def test_a_bayes_sweep_is_a_search_that_learns(self) -> None:
        found = read(WANDB, "sweep.yaml")
        sweep, space = found.sweep, space_of(found)
        assert sweep["name"] == "my sweep"
        assert sweep["command"] == ["python", "train.py"]
        assert sweep["metric"] == {"name": "val_loss", "goal": "min"}
        assert sweep["budget"] == {"runs": 30}
        assert sweep["prune"] == {"method": "asha", "min": 3, "factor": 3, "max": 27}
        named = {d.name: d for d in space.dimensions()}
        assert (named["lr"].low, named["lr"].high, named["lr"].log) == (1e-5, 1e-1, True)
        assert (named["old"].low, named["old"].high) == (0.0497870683679, 1.0)
        assert (named["inverse"].low, named["inverse"].high, named["inverse"].log) == (2, 4, True)
        assert (named["layers"].kind, named["drop"].kind) == ("int", "float")
        assert (named["batch"].kind, named["batch"].step) == ("int", 16)
        _, params = space.ask(lambda d: d.choices[0] if d.kind == "choice" else d.high)
        assert params["opt"] == {"name": "sgd", "betas": [0.9, 0.999]}
        assert params["epochs"] == 3
        assert any("probabilities" in note for note in found.notes)
        assert any(note.startswith("project:") for note in found.notes)
        assert found.runs == 30

    def test_a_grid_has_the_same_size_there_and_here(self) -> None:
        found = read(
            {
                "program": "t.py",
                "method": "grid",
                "parameters": {
                    "a": {"values": [1, 2, 3]},
                    "b": {"min": 1, "max": 4},
                    "n": {"parameters": {"c": {"values": ["x", "y"]}}},
                    "q": {"distribution": "q_uniform", "min": 0.0, "max": 1.0, "q": 0.25},
                },
            }
        )
        assert found.runs == space_of(found).count == 3 * 4 * 2 * 5

    def test_a_random_search_without_end_gets_one_and_says_so(self) -> None:
        found = read({"program": "t.py", "method": "random", "parameters": {"a": {"min": 0.0, "max": 1.0}}})
        assert found.runs is None
        assert space_of(found).count == 100
        assert any("budget.runs is 100" in note for note in found.notes)

    @pytest.mark.parametrize(
        ("form", "ours"),
        [
            ({"distribution": "normal", "mu": 1, "sigma": 2}, {"normal": [1, 2]}),
            ({"distribution": "q_log_normal", "mu": 1, "q": 5}, {"log_normal": [1, 1], "q": 5}),
            ({"mu": 3, "sigma": 1}, {"normal": [3, 1]}),
            ({"distribution": "uniform"}, {"min": 0, "max": 1}),
            (
                {"distribution": "q_log_uniform_values", "min": 1, "max": 100, "q": 2},
                {"min": 1, "max": 100, "log": True, "q": 2},
            ),
            ({"distribution": "q_uniform", "min": 1, "max": 10, "q": 3}, {"min": 1, "max": 10, "q": 3}),
            (
                {"distribution": "q_uniform", "min": 0.3, "max": 0.7, "q": 0.1},
                {"min": 0.3, "max": 0.7, "step": 0.1},
            ),
            (
                {"distribution": "inv_log_uniform", "min": 0, "max": 1},
                {"min": 0.367879441171, "max": 1.0, "log": True},
            ),
            ({"value": {"a": 1}}, {"value": {"a": 1}}),
        ],
    )
    def test_a_distribution_is_ours(self, form: dict[str, Any], ours: Any) -> None:
        found = read({"program": "t.py", "method": "random", "run_cap": 5, "parameters": {"x": form}})
        assert found.sweep["parameters"]["x"] == ours
        assert space_of(found).count in (1, 5)

    @pytest.mark.parametrize(
        ("command", "ours"),
        [
            (
                ["${env}", "python3", "${program}", "--fast", "${args}"],
                {"command": ["python3", "t.py", "--fast"]},
            ),
            (
                ["${interpreter}", "${program}", "${args_no_hyphens}"],
                {"command": ["python", "t.py"], "style": "equals"},
            ),
            (
                ["python", "${program}", "${args_no_boolean_flags}"],
                {"command": ["python", "t.py"], "style": {"booleans": "bare"}},
            ),
            (
                ["python", "${program}", "${args_json_file}"],
                {"command": ["python", "t.py", "{params_file}"], "style": "json"},
            ),
            (
                ["python", "${program}", "--config", "${args_json}"],
                {"command": ["python", "t.py", "--config", "{params_json}"], "style": "json"},
            ),
            (["python", "x.py"], {"command": ["python", "x.py"], "style": "none"}),
            ("python t.py --fast ${args}", {"command": ["python", "t.py", "--fast"]}),
        ],
    )
    def test_the_macros_of_a_command_are_filled(self, command: list[str] | str, ours: dict[str, Any]) -> None:
        sweep = read(
            {"program": "t.py", "command": command, "method": "grid", "parameters": {"a": {"value": 1}}}
        ).sweep
        assert {k: sweep[k] for k in ("command", "style") if k in sweep} == ours

    def test_command_variable_is_read_where_the_run_is(self) -> None:
        words = ["${env}", "printf", "%s|", "--data=${envvar:DATA}/x", "it's", "${envvar:HOME}", "${args}"]
        sweep = read(
            {"program": "t.py", "command": words, "method": "grid", "parameters": {"a": {"value": 1}}}
        ).sweep
        command = [*sweep["command"], "--lr", "a b"]
        done = subprocess.run(
            command, env={"PATH": os.environ["PATH"], "DATA": '$(x) "y', "HOME": "/h"}, capture_output=True
        )
        assert done.stdout.decode() == "--data=$(x) \"y/x|it's|/h|--lr|a b|", done.stderr
        unset = subprocess.run(command, env={"PATH": os.environ["PATH"], "HOME": "/h"}, capture_output=True)
        assert unset.returncode != 0 and b"DATA: is not set" in unset.stderr

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"method": "custom"}, "file.json:1: method: 'custom' cannot be carried over"),
            ({"parmeters": {}}, "no such key 'parmeters' .*did you mean 'parameters'"),
            ({"parameters": {"a": {"valeus": [1]}}}, "a: no such key 'valeus' .*did you mean 'values'"),
            ({"parameters": {"a": {"distribution": "unform"}}}, "no such distribution 'unform'.*uniform"),
            ({"parameters": {"a": {"distribution": ["x"]}}}, "no such distribution .*one of constant"),
            ({"parameters": {"a": {"distribution": "constant"}}}, "a: a constant needs its value"),
            ({"parameters": {"a": {"distribution": "q_uniform", "q": 0}}}, "a: q: 0 is not a number above 0"),
            ({"parameters": {"a": {"distribution": "uniform", "max": 10**309}}}, "a: 10*.* is not a number"),
            ({"parameters": {"a": {"distribution": "q_uniform", "q": 10**309}}}, "a: q: 10*.* is not"),
            ({"parameters": {"a": {"distribution": "q_normal", "q": "x"}}}, "a: q: 'x' is not a number"),
            ({"parameters": {"a": {"min": 1}}}, "a: needs value, values, min and max"),
            ({"metric": {"name": "x", "goal": "up"}}, "metric.goal: 'up' is not minimize or maximize"),
            ({"early_terminate": {"type": "x"}}, "early_terminate: .* is not of type hyperband"),
            (
                {"early_terminate": {"type": "hyperband", "max_iter": "9", "s": 2}},
                "max_iter: '9' is not a whole",
            ),
            (
                {"early_terminate": {"type": "hyperband", "min_iter": 3, "eta": 1}},
                "eta: 1 is not a whole number",
            ),
            (
                {"parameters": {"a": {"distribution": "beta", "a": 2, "b": 5}}},
                "a: beta cannot be carried over",
            ),
            (
                {
                    "method": "random",
                    "parameters": {"a": {"values": [1, 2], "probabilities": [0.9, 0.1]}},
                },
                "a: probabilities cannot be carried over",
            ),
            ({"command": 3}, "command: 3 is not a list of words"),
            ({"command": "python 't.py"}, "command: No closing quotation"),
        ],
    )
    def test_a_mistake_is_named(self, change: dict[str, Any], said: str) -> None:
        with pytest.raises(SpecError, match=said):
            read({"program": "t.py", "method": "grid", "parameters": {"a": {"value": 1}}, **change})


@pytest.mark.parametrize(
    "value",
    [
        {"parameters": {"lr": [1, 2]}},
        {"method": "random", "metric": {"name": "x", "goal": "max"}, "parameters": {"lr": {"values": [1]}}},
        {"hyperparameters": [{}]},
        [],
        None,
    ],
)
def test_a_file_of_ours_is_no_other_tools(value: Any) -> None:
    assert recognise(Document("f.json", value, {}), "stem") is None


def test_machines_of_clouDL_are_a_fleet_that_our_parser_takes(tmp_path: Path) -> None:
    found = machines(
        {
            "zones": ["us-west1-a", "us-west1-b"],
            "gpu": "nvidia-tesla-t4",
            "gpu_count": 2,
            "sourceImage": "projects/x/global/images/y",
            "diskSizeGb": 50,
            "preemptible": True,
            "name_prefix": "worker",
            "cpu_count": 4,
            "other": 1,
        }
    )
    assert found is not None
    assert found.notes == ("other: not carried over",)
    fleet = parse_project(load(to_yaml(found.project), "hostler.yaml"), tmp_path).fleets["worker"]
    assert fleet.backend == "gce"
    assert fleet.options["zones"] == ("us-west1-a", "us-west1-b")
    assert (fleet.options["gpu"], fleet.options["disk"], fleet.options["spot"]) == ("T4:2", 50 * 10**9, True)


def test_cluster_settings_become_a_store_and_workers(tmp_path: Path) -> None:
    found = machines(
        {
            "local_batch_size": 64,
            "worker_count": 4,
            "cloud_storage_bucket_name": "b",
            "cloud_storage_upload_folder": "/up/",
        }
    )
    assert found is not None
    project = parse_project(load(to_yaml(found.project), "hostler.yaml"), tmp_path)
    assert (project.store, project.resources.nodes) == ("gs://b/up", 4)
    gke = project.fleets["gke"]
    assert (project.fleet, gke.backend, gke.workers, project.distributed) == (
        "gke",
        "kubernetes",
        4,
        "tensorflow",
    )
    assert to_yaml(found.project).count("4") == 1, "the number of workers stands in one place"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1), values, min_size=1, max_size=4
    )
)
def test_what_is_written_is_read_back_as_it_was(table: dict[str, Any]) -> None:
    if "<<" not in json.dumps(table):
        assert load(to_yaml(table), "x.yaml").value == table
