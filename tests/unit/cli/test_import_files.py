from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hostler.cli.main import cli
from hostler.errors import MissingError, SpecError, UsageError
from hostler.spec.files.yaml12 import load

X = '{"method": "list", "data": [10, 20, 30]}'
CLOUDL = f'{{"iterations": 3, "hyperparameters": [{{"x": {X}, "e": 1}}, {{"e": 2}}]}}'
CONFIGS = '{"zones": ["z-a"], "preemptible": true, "name_prefix": "w"}'
JOB = "job_details: {name: grid}\nparameters:\n  a: [1, 1, 2]\n  when: [12:30, on]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cloud").mkdir()
    (tmp_path / "cloud/hyperparameters.json").write_text(CLOUDL)
    (tmp_path / "cloud/configs.json").write_text(CONFIGS)
    (tmp_path / "cloud/broken.json").write_text("{")
    (tmp_path / "cloud/user_startup.sh").write_text("true")
    (tmp_path / "grid.yaml").write_text(JOB)
    return tmp_path


def run(*words: str) -> tuple[str, str]:
    result = CliRunner().invoke(cli, ["import", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_folder_import_writes_both_files_and_shows_sizes(folder: Path) -> None:
    said, _ = run("cloud")
    assert "6 runs there, 6 runs here" in said
    sweep = load((folder / "sweep.yaml").read_text(), "sweep.yaml").value
    assert sweep["sections"][1] == {"e": 2, "ZIP": {"x": {"values": [10, 20, 30], "count": 3}}}
    assert load((folder / "hostler.yaml").read_text(), "h.yaml").value["fleets"]["w"]["backend"] == "gce"


def test_to_the_screen_it_is_the_file_alone(folder: Path) -> None:
    said, beside = run("grid.yaml", "-")
    assert load(said, "x.yaml").value["parameters"] == {"a": [1, 1, 2], "when": ["12:30", "on"]}
    assert "6 runs there, 4 runs here" in beside
    assert [path.name for path in folder.iterdir()].count("grid.sweep.yaml") == 0


def test_nothing_that_is_there_is_overwritten(folder: Path) -> None:
    run("grid.yaml")
    assert (folder / "grid.yaml").read_text() == JOB
    assert "a: [1, 1, 2]" in (folder / "grid.sweep.yaml").read_text()
    assert "grid.sweep.yaml is already there and unchanged" in run("grid.yaml")[0]
    (folder / "grid.sweep.yaml").write_text("mine too")
    with pytest.raises(UsageError, match=r"grid.sweep.yaml is there already"):
        run("grid.yaml")
    (folder / "sweep.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"sweep.yaml is there already"):
        run("cloud")
    assert not (folder / "hostler.yaml").exists()
    assert (folder / "sweep.yaml").read_text() == "mine"


def test_machines_are_shown_where_the_project_has_a_file(folder: Path) -> None:
    (folder / "hostler.yaml").write_text("name: mine\n")
    said, beside = run("cloud/configs.json")
    assert "backend: gce" in said
    assert "add these lines" in beside
    assert (folder / "hostler.yaml").read_text() == "name: mine\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"zones": None}, r"configs\.json: zones: None is not a list of zones"),
        ({"zones": [["z-a"]]}, "is not a list of zones"),
        ({"preemptible": "maybe"}, "'maybe' is neither true nor false"),
        ({"cpu_count": "many"}, "cpu_count: 'many' is not a whole number"),
        ({"diskSizeGb": "20 GB"}, "diskSizeGb: '20 GB' is not a whole number"),
        ({"worker_count": 0, "cloud_storage_bucket_name": "b"}, "worker_count: 0 is not a number of workers"),
        (
            {"worker_count": "two", "cloud_storage_bucket_name": "b"},
            "worker_count: 'two' is not a whole number",
        ),
        ({"worker_count": 2, "cloud_storage_bucket_name": None}, "None is not the name of a bucket"),
    ],
)
def test_impossible_machine_value_is_refused_before_writing(
    folder: Path, given: dict[str, Any], said: str
) -> None:
    whole = given if "worker_count" in given else {**json.loads(CONFIGS), **given}
    (folder / "cloud/configs.json").write_text(json.dumps(whole))
    for words in (["cloud/configs.json"], ["cloud", "."] if "zones" in whole else ["cloud/configs.json"]):
        with pytest.raises(SpecError, match=said):
            run(*words)
    assert not (folder / "hostler.yaml").exists() and not (folder / "sweep.yaml").exists()


def test_words_for_true_false_and_addresses_of_buckets_are_understood(folder: Path) -> None:
    (folder / "cloud/configs.json").write_text(json.dumps({**json.loads(CONFIGS), "preemptible": "False"}))
    assert "spot: false" in run("cloud/configs.json", "-")[0]
    text = "worker_count: 2\ncloud_storage_bucket_name: gs://b/\n"
    (folder / "settings.yaml").write_text(text)
    assert 'store: "gs://b"\n' in run("settings.yaml", "-")[0]


def test_unknown_method_is_read_as_uniform_with_a_note(folder: Path) -> None:
    search = {"iterations": 2, "hyperparameters": [{"x": {"method": "gaussian", "data": [1, 2]}}]}
    (folder / "cloud/hyperparameters.json").write_text(json.dumps(search))
    assert "x: the method 'gaussian' is read as uniform random" in run("cloud/hyperparameters.json", "-")[1]


def test_json_says_all_of_it(folder: Path) -> None:
    found = json.loads(run("grid.yaml", "other.yaml", "--json")[0])
    assert (found["written"], found["runs_there"], found["runs"]) == ("other.yaml", 6, 4)
    assert found["tool"] == "experiment-starter"


def test_vm_script_becomes_a_project_without_secret_scripts(
    folder: Path,
) -> None:
    text = "gcloud compute instances create vm --zone us-central1-a --metadata A=1,API_KEY=hush\n"
    (folder / "train.sh").write_text(text)
    said = "".join(run("train.sh"))
    assert "train.sh → hostler.yaml" in said and "is there already" not in said and "hush" not in said
    assert "train.sh holds secrets" in said and (folder / ".hostlerignore").read_text() == "train.sh\n"
    assert "backend: gce" in (folder / "hostler.yaml").read_text()


def test_what_others_call_the_space_is_named_as_ours(folder: Path) -> None:
    (folder / "mine.yaml").write_text("name: x\nspace: {lr: [1]}\n")
    with pytest.raises(UsageError, match=r"`space` is called `parameters`"):
        run("mine.yaml")


def test_what_is_no_other_tools_is_refused(folder: Path) -> None:
    (folder / "own.yaml").write_text("parameters: {a: [1]}\n")
    with pytest.raises(UsageError, match=r"own.yaml is not a file of a tool .*hostler plan"):
        run("own.yaml")
    (folder / "empty").mkdir()
    with pytest.raises(MissingError, match="no file of a tool"):
        run("empty")
    with pytest.raises(UsageError, match="2 files to import"):
        run("cloud", "x.yaml")
