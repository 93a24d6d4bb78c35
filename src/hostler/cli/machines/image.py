"""`hostler image`: images for fleets: of VMs, in families; of containers, by docker."""

from __future__ import annotations

from pathlib import Path

from hostler.cli.machines import image_cloud, image_docker
from hostler.cli.machines.image_cloud import Site, Wanted
from hostler.errors import UsageError
from hostler.spec import dockerfile


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
    docker_base: str | None,
    push: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make an image. A script that fails or hangs publishes nothing; the VM is gone in every case."""
    if docker:
        if family or script or from_vm:
            raise UsageError(
                "--docker cannot be combined with --family, --script or --from-vm",
                hint="leave --docker out, or the others",
            )
        return image_docker.build(tag, docker_base or dockerfile.BASE, push=push)
    if family is None:
        raise UsageError(
            "the kind of image is not given",
            hint="--family NAME: for VMs of Compute Engine; --docker: a container image for Kubernetes",
        )
    wanted = Wanted(family, script, requirements, base, from_project, from_vm, timeout, machine, gpu, disk)
    return image_cloud.build(wanted, Site(on, project, zone), yes=yes, as_json=as_json)


def list_(
    family: str | None, on: str | None, project: str | None, zone: tuple[str, ...], as_json: bool
) -> int:
    """List images that hostler made, or all of a family; * is what the family means now."""
    return image_cloud.show(family or "", Site(on, project, zone), as_json=as_json)


def delete(
    family: str, keep: int, on: str | None, project: str | None, zone: tuple[str, ...], yes: bool
) -> int:
    """Delete the old images of a family, after asking; what hostler did not make stays."""
    return image_cloud.delete(family, keep, Site(on, project, zone), yes=yes)
