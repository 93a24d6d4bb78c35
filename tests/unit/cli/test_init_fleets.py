"""`hostler init`: fleets for what a machine has, in a new hostler.yaml and in one that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from acting_world import World, world  # noqa: F401
from hostler.backends.fleet_files import discovered, example, section
from hostler.backends.project_file import load_project
from hostler.backends.registry import BACKENDS
from hostler.cli.begin.fleet_sections import add, offered, wanted
from hostler.cli.begin.verbs import init
from hostler.errors import UsageError

SSH_CONFIG = """\
Include more/*.conf
Host gpu1 gpu2 *.lan !gpu9
  User ada
Host=gpu3
Host github.com
  User git
Match host gpu4
  User ada
Host *
  ServerAliveInterval 30
"""
KUBECONFIG = {
    "current-context": "lab",
    "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": "vision"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1"}}],
    "users": [{"name": "u", "user": {}}],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that has nothing, on a machine without Slurm."""
    made = tmp_path / "home"
    (made / ".ssh" / "more").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("KUBECONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    return made


def equip(home: Path) -> None:
    """ssh hosts, a kubeconfig and Google's login."""
    (home / ".ssh" / "config").write_text(SSH_CONFIG)
    (home / ".ssh" / "more" / "a.conf").write_text("Host tau\n  HostName 10.0.0.7\n")
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text(yaml.safe_dump(KUBECONFIG))
    login = home / ".config" / "gcloud" / "application_default_credentials.json"
    login.parent.mkdir(parents=True)
    login.write_text(json.dumps({"type": "authorized_user", "quota_project_id": "ada-lab-12"}))


def typed(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(init, [str(folder), *words], standalone_mode=False)
    assert done.exception is None, done.output
    return done.output


def test_bare_machine_is_offered_no_fleet(home: Path, tmp_path: Path) -> None:
    assert offered() == []
    typed(tmp_path / "p", "-y")
    assert "fleets" not in (tmp_path / "p" / "hostler.yaml").read_text()


def test_found_platforms_are_offered_filled_in_and_commented(home: Path, tmp_path: Path) -> None:
    equip(home)
    said = typed(tmp_path / "p", "-y")
    assert "found ~/.ssh/config, tau, gpu1, gpu2, gpu3: fleet lab is in hostler.yaml" in said
    assert (
        "found Google credentials, project ada-lab-12" in said and "found a kubeconfig, context lab" in said
    )
    text = (tmp_path / "p" / "hostler.yaml").read_text()
    assert load_project(tmp_path / "p" / "hostler.yaml").fleets == {}  # switched off
    at = text.index("# fleets:")
    on = text[:at] + "".join(line.removeprefix("# ") for line in text[at:].splitlines(keepends=True))
    (tmp_path / "p" / "hostler.yaml").write_text(on)
    fleets = load_project(tmp_path / "p" / "hostler.yaml").fleets
    assert fleets["lab"].options["hosts"] == ("tau", "gpu1", "gpu2", "gpu3")
    assert fleets["burst"].options["project"] == "ada-lab-12"
    assert (fleets["pods"].options["context"], fleets["pods"].options["namespace"]) == ("lab", "vision")


@pytest.mark.parametrize("name", BACKENDS)
def test_fleet_option_writes_a_project_that_parses(home: Path, tmp_path: Path, name: str) -> None:
    said = typed(tmp_path / "p", "-y", "--fleet", name)
    [fleet] = load_project(tmp_path / "p" / "hostler.yaml").fleets.values()
    assert fleet.backend == name
    assert f"fleet {fleet.name}" in said and "hostler doctor checks them" in said


@pytest.mark.parametrize("name", BACKENDS)
def test_section_is_the_fleet_of_its_example(name: str) -> None:
    whole = yaml.safe_load(example(name))
    one = section(name, None)
    assert yaml.safe_load(one.text) == {one.fleet: whole["fleets"][whole["fleet"]]}
    assert one.fleet == whole["fleet"]


def test_filled_in_value_is_no_longer_to_fill_in(home: Path) -> None:
    assert wanted(["ssh"])[0].to_fill_in == ["hosts"]
    equip(home)
    [one] = wanted(["ssh"])
    assert one.to_fill_in == [] and "names of ~/.ssh/config" in one.text


def test_slurm_is_found_by_its_default_partition(home: Path, tmp_path: Path) -> None:
    for name, text in (("sbatch", "exit 0"), ("sinfo", "printf 'cpu\\ngpu*\\n'")):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    found = discovered("slurm")
    assert found is not None and found.values == {"partition": "gpu"}


def test_slurm_programs_without_a_cluster_are_not_offered(home: Path, tmp_path: Path) -> None:
    said = "echo 'fatal: Could not establish a configuration source' >&2; exit 1"
    for name, text in (("sbatch", "exit 0"), ("sinfo", said)):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    assert discovered("slurm") is None


@pytest.mark.parametrize("text", ["{", "[1]", "current-context: x", "\0"])
def test_broken_files_of_other_tools_are_passed_over(home: Path, text: str) -> None:
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text(text)
    (home / ".ssh" / "config").write_text('Host "unclosed\nInclude config\n')
    login = home / ".config" / "gcloud" / "application_default_credentials.json"
    login.parent.mkdir(parents=True)
    login.write_text(text)
    assert discovered("kubernetes") is None and discovered("ssh") is None
    assert not (discovered("gce") or section("gce", None)).found.startswith("project")


OWN = """\
# my project
name: mine   # a name
fleets:  # all of them
    desk: {backend: local}   # here
    # the lab's
    tau:
        backend: slurm
        partition: long
command: python train.py
"""


@pytest.mark.parametrize(
    "text",
    [
        OWN,
        "name: mine\n",
        "name: mine",
        "# nothing\n",
        "name: x\nfleets:\n",
        "fleets:\n desk: {backend: local}\n",
    ],
    ids=["indented", "without", "no newline", "only comments", "empty fleets", "one space"],
)
def test_fleet_is_added_and_every_line_kept(home: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "hostler.yaml"
    path.write_text(text)
    before = load_project(path)
    assert "added to" in typed(tmp_path, "--fleet", "gce")
    after = load_project(path)
    assert set(after.fleets) == {*before.fleets, "burst"} and after.name == before.name
    assert all(after.fleets[name] == fleet for name, fleet in before.fleets.items())
    left = iter(path.read_text().splitlines())
    assert all(line in left for line in text.splitlines())  # in their order
    assert not [one for one in tmp_path.iterdir() if one.name not in ("hostler.yaml", "home", "bin")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hostler.yaml", "{name: x, fleets: {desk: {backend: local}}}\n"),
        ("hostler.yaml", "fleets: {desk: {backend: local}}\n"),
        ("hostler.json", '{"fleets": {"desk": {"backend": "local"}}}'),
    ],
)
def test_fleet_that_cannot_be_added_is_printed(home: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    said = typed(tmp_path, "--fleet", "slurm")
    assert f"put this below `fleets:` of {tmp_path / name}" in said and "backend: slurm" in said
    assert (tmp_path / name).read_text() == text


def test_fleet_of_a_taken_name_is_refused(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostler.yaml"
    path.write_text("fleets:\n  burst: {backend: local}\n")
    with pytest.raises(UsageError, match="already has a fleet named burst"):
        add(path, wanted(["gce"]))
    assert path.read_text() == "fleets:\n  burst: {backend: local}\n"


def test_unknown_backend_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no backend named 'slrum' \(did you mean slurm\?\)"):
        wanted(["slrum"])
    with pytest.raises(UsageError, match="one of local, ssh"):
        wanted(["xyz"])


def test_folder_store_is_pointed_out_where_workers_cannot_reach_it(home: Path, tmp_path: Path) -> None:
    assert "set store: gs://my-bucket/my-project" in typed(tmp_path / "a", "-y", "--fleet", "gce")
    (tmp_path / "hostler.yaml").write_text("store: gs://mine/x\n")
    assert "set store" not in typed(tmp_path, "--fleet", "gce")


def test_plan_and_doctor_accept_what_init_writes(world: World) -> None:  # noqa: F811
    world.write("train.py", "print(1)\n")
    world.ok("init", "-y", "--fleet", "local", "--fleet", "slurm")
    assert "6 runs" in world.ok("plan", "sweep.yaml")
    said = world.cli("doctor")
    assert "hostler.yaml" in said.stdout and "Traceback" not in said.stderr
