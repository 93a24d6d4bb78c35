from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from acting_world import PRINTS, World, make_world, world
from hostler.records import layout
from hostler.records.sweep import sweeps
from hostler.spec.job import Job

__all__ = ["world"]

NASTY = "a b'c\"d\n; echo x $(touch evil) é"


@pytest.fixture
def script(world: World) -> World:
    world.write("train.py", PRINTS)
    return world


def refused(world: World, *words: str, code: int, says: str, **env: str) -> str:
    """It exits so, says so in one line and what to do in another, and has submitted nothing."""
    before = world.sweeps()
    done = world.cli("run", *words, **env)
    lines = done.stderr.splitlines()
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert lines[0].startswith("hostler: ") and len(lines) <= 2, lines
    assert world.sweeps() == before
    return done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("comand: python train.py", "did you mean 'command'?"),
        ("limits: {tiem: 3h}", "did you mean 'time'?"),
        ("retries: many", "hostler.yaml:1: retries"),
        ("command: [", "hostler.yaml:"),
        ("- a list", "not a table"),
        ("fleets: {a: {backend: slrum}}", "is not a backend"),
        ("command: a && b", "needs a shell"),
        ("fleet: desk", "no fleet named 'desk'"),
    ],
)
def test_a_wrong_project_file_is_one_line_with_its_place(script: World, text: str, says: str) -> None:
    script.write("hostler.yaml", text)
    refused(script, "train.py", code=2, says=says)


def test_a_project_file_that_is_no_text_is_refused(script: World) -> None:
    (script.folder / "hostler.yaml").write_bytes(b"\xff\xfe\x00\x80")
    refused(script, "train.py", code=2, says="not UTF-8")


def test_a_project_file_of_a_newer_version_says_upgrade(script: World) -> None:
    script.write("hostler.yaml", "format: 9\nfuture: [1]\n")
    refused(script, "train.py", code=1, says="upgrade")


@pytest.mark.parametrize("record", ["project", "sweep"])
def test_a_store_of_a_newer_format_is_left_alone(script: World, record: str) -> None:
    script.ok("run", "--name", "a", "train.py")
    key = layout.project(1) if record == "project" else layout.spec("a", 1)
    body = json.loads(script.store.get(key).data)
    script.store.put(key, json.dumps({**body, "format": 99}).encode())
    refused(script, "--name", "a", "train.py", code=1, says="upgrade")


def test_a_script_that_is_not_there_gets_a_suggestion(script: World) -> None:
    refused(script, "trian.py", code=1, says="did you mean 'train.py'?")


def test_script_name_longer_than_any_file_is_missing(script: World) -> None:
    refused(script, "x" * 300 + ".py", code=1, says="no script or program")


def test_a_folder_is_no_script(script: World) -> None:
    (script.folder / "src").mkdir()
    refused(script, "src", code=2, says="is a folder")


def test_nothing_to_run_says_what_to_type(script: World) -> None:
    refused(script, code=2, says="hostler run train.py")
    refused(script, "lr=0.1", code=2, says="hostler init")


@pytest.mark.parametrize(
    "text",
    [
        "command: python missing.py",
        "command: python train.py\npython: {requirements: missing.txt}",
        "command: python train.py\nsetup: bash missing.sh",
        "command: python train.py\ndata: {train: missing/}",
    ],
)
def test_missing_project_file_is_reported_before_submission(script: World, text: str) -> None:
    script.write("hostler.yaml", text)
    refused(script, "lr=1", code=1, says="missing")


def test_ignored_script_is_reported_before_submission(script: World) -> None:
    script.write(".gitignore", "train.py\n")
    refused(script, "train.py", code=1, says="is it in .gitignore")


def test_a_secret_that_is_not_set_is_missed_before_submission(script: World) -> None:
    script.write("hostler.yaml", "command: python train.py\nsecrets: [MY_TOKEN]\n")
    refused(script, "lr=1", code=2, says="export MY_TOKEN")
    assert script.cli("run", "lr=1", MY_TOKEN="x").returncode == 0


def test_a_store_that_is_a_file_is_refused(script: World) -> None:
    script.write("thing", "")
    refused(script, "--store", "thing", "train.py", code=1, says="a file is where a folder should be")


def test_a_store_that_cannot_be_written_is_refused(script: World, tmp_path: Path) -> None:
    """Root may write anywhere but where the kernel says no to everybody."""
    refused(script, "--store", "/proc/store", "train.py", code=1, says="/proc/store")
    if os.getuid() != 0:
        (tmp_path / "shut").mkdir(mode=0o500)
        refused(script, "--store", str(tmp_path / "shut"), "train.py", code=1, says="permission denied")


@pytest.mark.parametrize("url", ["s4://bucket/x", "ftp://host/x", "s3://", "s3:bucket"])
def test_an_address_that_is_no_store_is_refused(script: World, url: str) -> None:
    refused(script, "--store", url, "train.py", code=2, says=url)


def test_a_dead_endpoint_is_given_up_on_soon(script: World) -> None:
    [port] = servers.free_ports(1)
    env = {**servers.CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    refused(script, "--store", "s3://b/x", "train.py", code=75, says="does not answer", **env)


@pytest.mark.real
def test_a_bucket_that_is_not_there_is_refused(script: World, moto_url: str) -> None:
    env = {**servers.CREDENTIALS, "AWS_ENDPOINT_URL": moto_url}
    refused(script, "--store", "s3://no-such/x", "train.py", code=1, says="the bucket does not exist", **env)


def test_an_unknown_fleet_and_an_unknown_option_are_refused(script: World) -> None:
    script.write("hostler.yaml", "fleets: {desk: {backend: local}}")
    refused(script, "--on", "desk2", "train.py", code=1, says="did you mean 'desk'?")
    refused(script, "--name", " ", "train.py", code=2, says="--name is empty")


def test_wrong_time_in_the_environment_is_one_line(script: World) -> None:
    refused(script, "train.py", code=2, says="HOSTLER_BEAT='soon' is not a number", HOSTLER_BEAT="soon")


def test_a_folder_of_gigabytes_is_refused_naming_what_is_large(script: World) -> None:
    with open(script.folder / "model.bin", "wb") as file:
        file.truncate(3 << 30)
    refused(script, "train.py", code=2, says="model.bin 3.2 GB")


def test_another_command_under_one_name_is_refused(script: World) -> None:
    script.ok("run", "--name", "a", "train.py", "1")
    refused(script, "--name", "a", "train.py", "2", code=2, says="with another command")
    script.ok("run", "--name", "a-2", "train.py", "2")
    assert "done already" in script.cli("run", "--name", "a", "train.py", "1").stderr


@pytest.mark.parametrize("name", [NASTY, "x" * 300, "..", "-rf", "a/b/../c", "日本"])
def test_any_name_works_and_is_made_safe(script: World, name: str) -> None:
    assert "args 1" in script.ok("run", "--name", name, "train.py", "1")
    [sweep] = script.sweeps()
    assert len(sweep) <= 48 and sweep.replace("-", "").replace(".", "").isalnum()
    assert "done already" in script.cli("run", "--name", name, "train.py", "1").stderr


def test_any_folder_and_script_name_works(tmp_path: Path) -> None:
    world = make_world(tmp_path, NASTY)
    try:
        world.write(f"{NASTY}.py", PRINTS)
        assert f"args {NASTY}" in world.ok("run", f"{NASTY}.py", NASTY)
        world.write(f"{'x' * 250}.py", PRINTS)
        assert "args 1" in world.ok("run", f"{'x' * 250}.py", "1")
        assert not list(tmp_path.rglob("evil"))
    finally:
        world.end()


def test_an_absolute_path_into_the_project_is_the_relative_one(script: World) -> None:
    script.ok("run", "--name", "a", str(script.folder / "train.py"))
    assert "done already" in script.cli("run", "--name", "a", "train.py").stderr


@pytest.mark.parametrize("form", ["relative", "absolute", "after python"])
def test_script_outside_the_project_is_used_in_place(world: World, form: str) -> None:
    outside = world.folder.parent / "outside.py"
    outside.write_text(PRINTS)
    words = {
        "relative": ["../outside.py"],
        "absolute": [str(outside)],
        "after python": ["python", "../outside.py"],
    }[form]
    done = world.cli("run", *words, "--lr", "1")
    assert done.returncode == 0 and "args --lr 1" in done.stdout
    assert "outside.py is outside" in done.stderr and "not as part of the code snapshot" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte, in a file system of its own."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(place)], capture_output=True
    )
    if not mounted or mounted.returncode != 0:
        servers.missing("a file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def incompressible(world: World, size: int) -> None:
    (world.folder / "weights.bin").write_bytes(os.urandom(size))


@pytest.mark.real
def test_full_disk_under_the_store_leaves_no_run(script: World, small_disk: Path) -> None:
    incompressible(script, 3_000_000)
    refused(script, "--store", str(small_disk), "train.py", code=1, says="the disk is full")
    assert not list(small_disk.glob("sweeps/*"))


@pytest.mark.real
def test_full_disk_under_the_cache_leaves_no_run(script: World, small_disk: Path) -> None:
    incompressible(script, 3_000_000)
    refused(script, "train.py", code=1, says="No space left", HOSTLER_CACHE=str(small_disk))


def test_a_script_that_is_not_there_says_what_to_do(world: World) -> None:
    world.write("hostler.yaml", "command: python zzz.py")
    done = world.cli("run", "a=1")
    assert done.returncode == 1 and "create it, or name another under `command:`" in done.stderr


def test_a_parameter_that_is_no_text_can_still_be_listed(world: World) -> None:
    job = Job(name="odd", command=("python", "x.py"), runs=({"file": "\udcff.txt"}, {"file": "b"}))
    sweeps.submit(world.store, job)
    done = world.cli("status")
    assert done.returncode == 0 and [line.split() for line in done.stdout.splitlines()[:3]] == [
        ["NAME", "STATE", "file"],
        ["odd/0", "queued", r"\udcff.txt"],
        ["odd/1", "queued", "b"],
    ]
