"""`hostler doctor`: one line for one trouble."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hostler.attempt import nvml
from hostler.backends.doctor import Check
from hostler.cli.begin import doctor
from hostler.cli.doctor import this_machine
from hostler.cli.main import declared
from hostler.spec.job import PythonEnv
from hostler.spec.project import Fleet, Project, Resources


def test_fault_of_a_fleet_and_its_cloud_is_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSTLER_GCE_ENDPOINT", "http://127.0.0.1:1/compute/v1")
    fleet = "{backend: gce, project: My Project, zones: [us-central1-a], price: 1}"
    Path("hostler.yaml").write_text(f"name: p\nstore: {tmp_path / 'store'}\nfleets:\n  burst: {fleet}\n")
    monkeypatch.setattr("hostler.backends.gce.plans._check_store", lambda fleet, launch: None)
    answer = CliRunner().invoke(declared("doctor"), ["--json"], standalone_mode=False)
    found = [check["detail"] for check in json.loads(answer.output) if check["what"] == "burst"]
    assert found == ["fleet burst: 'My Project' is not the id of a Google Cloud project"]


def test_a_gpu_is_missed_only_where_runs_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostler.attempt.nvml.read", lambda: nvml.GpuSnapshot(problem="no driver"))
    fleets = {"away": Fleet("away", "slurm"), "desk": Fleet("desk", "local")}
    asks = Project("p", tmp_path, ".hostler", resources=Resources(gpus=1), fleets=fleets)
    levels = {
        usual: [check.level for check in this_machine._gpus(replace(asks, fleet=usual))]
        for usual in (None, "away", "desk")
    }
    assert levels == {None: ["warn"], "away": ["none"], "desk": ["warn"]}


def test_long_host_name_gets_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    short = doctor.lines(Check("ok", "kubernetes", "a context"))
    long = doctor.lines(Check("bad", "gpu-node-017.lab.example.org", "does not answer", "wake it"))
    assert [line.find("a context") for line in short] == [18]
    assert [line.strip() for line in long] == [
        "bad   gpu-node-017.lab.example.org",
        "does not answer",
        "→ wake it",
    ]
    assert {line.index(word) for line, word in zip(long[1:], ("does", "→"), strict=True)} == {18}


def test_long_finding_wraps_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    check = Check("none", "extras", " ".join(["word"] * 40), "pip install " + "x " * 40)
    assert len(doctor.lines(check)) == 2
    broken = doctor.lines(check, 80)
    assert len(broken) > 4 and max(map(len, broken)) <= 80
    assert all(line.startswith(" " * 18) for line in broken[1:])
    assert " ".join(" ".join(broken).split()) == " ".join(" ".join(doctor.lines(check)).split())


def test_torch_without_gpus_is_reported_where_one_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = nvml.GPU(0, "u", "H200")
    project = Project("p", tmp_path, ".hostler")
    monkeypatch.setattr("hostler.attempt.nvml.read", lambda: nvml.GpuSnapshot((gpu,), "570"))
    found = {}
    for version in ("2.13.0+cpu", "2.13.0", ""):
        monkeypatch.setattr(this_machine, "_version", lambda package, version=version: version)
        found[version] = this_machine._torch(project).level
    assert found == {"2.13.0+cpu": "warn", "2.13.0": "ok", "": "none"}
    monkeypatch.setattr(this_machine, "_version", lambda package: "2.13.0+cpu")
    assert this_machine._torch(replace(project, python=PythonEnv(venv="/opt/env"))).level == "ok"
