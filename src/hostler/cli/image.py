"""`hostler image`: images for fleets: of VMs, in families; of containers, by docker."""

from __future__ import annotations

from pathlib import Path

import click

from hostler.cli import here, image_cloud, image_docker
from hostler.cli.image_cloud import Site, Wanted
from hostler.errors import UsageError
from hostler.spec import dockerfile


@click.group()
def command() -> None:
    """Images for fleets of VMs (Compute Engine) and of containers (Kubernetes)."""


@command.command()
@click.option("--family", metavar="NAME", help="The family that it becomes the newest image of.")
@click.option("--script", type=click.Path(path_type=Path), help="Run by root on a VM that is made for it.")
@click.option(
    "--requirements", is_flag=True, help="Also the project's packages (without --script: only them)."
)
@click.option("--from", "base", metavar="FAMILY", help="What it begins with (default: as the fleet's VMs).")
@click.option("--from-project", metavar="ID", help="Whose family that is, if it is not yours.")
@click.option("--from-vm", metavar="VM", help="Begin with a copy of a VM's disk; what is private is removed.")
@click.option("--timeout", metavar="TIME", default="1h", help="How long it may take (1h).")
@image_cloud.site_options
@click.option("--machine", metavar="TYPE", help="On which it is built (e2-standard-4).")
@click.option("--gpu", metavar="GPU", help="With which it is built, like T4:1 (none).")
@click.option("--disk", metavar="SIZE", help="Of the image (50GB); VMs need no less.")
@click.option("--docker", is_flag=True, help="A container image instead, by docker or podman.")
@click.option("--tag", metavar="NAME", help="--docker: its name, with its registry: registry/me/train:1.")
@click.option(
    "--base", "docker_base", metavar="IMAGE", default=dockerfile.BASE, help="--docker: what it begins with."
)
@click.option("--push/--no-push", default=True, help="--docker: bring it to its registry (default), or not.")
@here.yes_option
@here.json_option
def build(
    family: str | None,
    script: Path | None,
    requirements: bool,
    base: str | None,
    from_project: str | None,
    from_vm: str | None,
    timeout: str,
    on: str | None,
    project: str | None,
    zone: tuple[str, ...],
    machine: str | None,
    gpu: str | None,
    disk: str | None,
    docker: bool,
    tag: str | None,
    docker_base: str,
    push: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make an image. A script that fails or hangs publishes nothing; the VM is gone in every case.

    \b
    hostler image build --family F --script setup.sh    an image for fleets with `family: F`
    hostler image build --family F                      with the project's packages
    hostler image build --family F --from-vm NAME       of a VM that was set up by hand
    hostler image build --docker --tag registry/me/x:1  of a container, built and pushed
    """
    if docker:
        if family or script or from_vm:
            raise UsageError("--docker makes no VM's image", hint="leave --docker out, or the others")
        return image_docker.build(tag, docker_base, push=push)
    if family is None:
        raise UsageError(
            "which kind of image?",
            hint="--family NAME: for VMs of Compute Engine; --docker: a container image for Kubernetes",
        )
    wanted = Wanted(family, script, requirements, base, from_project, from_vm, timeout, machine, gpu, disk)
    return image_cloud.build(wanted, Site(on, project, zone), yes=yes, as_json=as_json)


@command.command("list")
@click.argument("family", required=False)
@image_cloud.site_options
@here.json_option
def list_(
    family: str | None, on: str | None, project: str | None, zone: tuple[str, ...], as_json: bool
) -> int:
    """Images that hostler made, or all of a family; * is what the family means now."""
    return image_cloud.show(family or "", Site(on, project, zone), as_json=as_json)


@command.command()
@click.argument("family")
@click.option("--keep", type=click.IntRange(min=0), default=1, metavar="N", help="The newest N stay (1).")
@image_cloud.site_options
@here.yes_option
def delete(
    family: str, keep: int, on: str | None, project: str | None, zone: tuple[str, ...], yes: bool
) -> int:
    """Delete the old images of a family, after asking; what hostler did not make stays."""
    return image_cloud.delete(family, keep, Site(on, project, zone), yes=yes)
