"""An image for fleets of containers: its Dockerfile, and what docker is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli_world import World
from hostler.backends.images import Image
from hostler.cli.machines.image_cloud import made_at

DOCKER = '#!/bin/sh\necho "$@" >> "$SAID"\n[ "$1" != "$FAILS" ]\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("hostler.yaml", "name: mine\npython: {requirements: needs.txt}\n")
    world.write("needs.txt", "numpy\n")
    bare = tmp_path / "bin"
    bare.mkdir()
    world.env = {**world.env, "PATH": str(bare), "SAID": str(tmp_path / "said"), "FAILS": ""}
    return world


def has(world: World, program: str) -> None:
    path = Path(world.env["PATH"]) / program
    path.write_text(DOCKER)
    path.chmod(0o755)


def test_the_dockerfile_has_the_packages_and_is_never_written_over(world: World) -> None:
    done = world.run("image", "build", "--docker")
    assert done.code == 0 and "nothing is built" in done.err
    text = (world.folder / "Dockerfile").read_text()
    assert "FROM python:3.12-slim" in text and 'COPY ["needs.txt", "requirements.txt"]' in text
    (world.folder / "Dockerfile").write_text("FROM mine\n")
    assert "is used as it is" in world.run("image", "build", "--docker").err
    assert (world.folder / "Dockerfile").read_text() == "FROM mine\n"


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_it_is_built_and_pushed_where_a_program_is_there(world: World, program: str) -> None:
    has(world, program)
    done = world.run("image", "build", "--docker", "--tag", "r/me/train:1", "--base", "mine:2")
    assert done.code == 0 and done.out == "r/me/train:1\n", done.err
    said = Path(world.env["SAID"]).read_text().splitlines()
    assert said == [
        f"build --tag r/me/train:1 --file {world.folder}/Dockerfile {world.folder}",
        "push r/me/train:1",
    ]
    assert "FROM mine:2" in (world.folder / "Dockerfile").read_text()
    assert world.run("image", "build", "--docker", "--tag", "x", "--no-push").code == 0
    assert len(Path(world.env["SAID"]).read_text().splitlines()) == 3


def test_missing_or_failing_docker_is_one_line(world: World) -> None:
    done = world.run("image", "build", "--docker", "--tag", "r/x:1")
    assert done.code == 1 and "neither docker nor podman is installed here" in done.err
    assert "docker build -t r/x:1 ." in done.err
    has(world, "docker")
    done = world.run("image", "build", "--docker", "--tag", "r/x:1", FAILS="push")
    assert done.code == 1 and "docker push ended with 1" in done.err and "docker login" in done.err
    assert world.run("image", "build").code == 2
    os.remove(world.folder / "needs.txt")
    assert (
        "needs.txt, named by `python: {requirements}`, does not exist"
        in world.run("image", "build", "--docker").err
    )


@pytest.mark.parametrize("said", ["2026-11-15T16:27:29.389-08:00", "2026-11-16T00:27:29Z"])
def test_image_time_is_shown_in_utc(said: str) -> None:
    assert made_at(Image("mine-20261116-002729-22eb", "mine", said, 1, 50)) == "2026-11-16 00:27"
