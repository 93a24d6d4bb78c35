"""`hostler doctor`: one line for one trouble."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hostler.cli import doctor


def test_what_ails_a_fleet_and_its_cloud_alike_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSTLER_GCE_ENDPOINT", "http://127.0.0.1:1/compute/v1")
    fleet = "{backend: gce, project: My Project, zones: [us-central1-a], price: 1}"
    Path("hostler.yaml").write_text(f"name: p\nstore: {tmp_path / 'store'}\nfleets:\n  burst: {fleet}\n")
    monkeypatch.setattr("hostler.backends.gce.plans._check_store", lambda fleet, launch: None)
    answer = CliRunner().invoke(doctor.command, ["--json"], standalone_mode=False)
    found = [check["detail"] for check in json.loads(answer.output) if check["what"] == "burst"]
    assert found == ["fleet burst: 'My Project' is no id of a Google Cloud project"]
