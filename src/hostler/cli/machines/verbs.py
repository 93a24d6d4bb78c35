"""Options of the verbs under "Machines": all that their `--help` loads."""

from __future__ import annotations

from typing import Any

import click

from hostler.cli import options
from hostler.cli.options import FilePath, perform

IDLE = "30m"


@click.command()
@click.argument("fleet", required=False)
@click.option("--keep", is_flag=True, help="One machine for hand work instead (ssh, sync, notebook).")
@click.option("--idle", metavar="TIME", default=IDLE, help=f"Remove it after this long without use ({IDLE}).")
@click.option("-n", "-d", "--dry-run", is_flag=True, help="Show what would be started; start nothing.")
@click.option("--role", metavar="WHO", help="Print the rights that WHO needs for this fleet; start nothing.")
@options.yes_option
@options.store_option
def up(**given: Any) -> int:
    """Start a fleet's workers for all that is queued, on its machines that have none.

    Machines that were down when a run was submitted are started this way when they are back.
    On Kubernetes --dry-run prints the manifest, --role a Role and its binding: kubectl apply takes both.
    """
    return perform("hostler.cli.machines.up", given)


@click.command()
@click.argument("fleet", required=False)
@click.option("--now", is_flag=True, help="Kill them: what was not saved is lost.")
@options.store_option
def down(**given: Any) -> int:
    """End the workers of a fleet. Their runs are saved and queued again; hostler up goes on with them.

    Machines that came with the fleet are removed: VMs, disks, groups, templates, by the project's label.
    """
    return perform("hostler.cli.machines.down", given)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-L", "ports", multiple=True, metavar="PORT", help="Forward its port: 6006, or HERE:THERE.")
@click.argument("host", required=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND…]")
def ssh(**given: Any) -> int:
    """Open a shell on a machine of a fleet, named in hostler.yaml or ~/.ssh/config, or run a command.

    \b
    hostler ssh gpu1                    a shell
    hostler ssh -L 6006 gpu1            its port 6006 is http://127.0.0.1:6006 here
    hostler ssh gpu1 -- nvidia-smi -L   words arrive as they are; a single one may be a shell's line

    A fleet's name is its only machine. The exit code is that of the command.
    """
    return perform("hostler.cli.machines.ssh", given)


@click.command()
@click.argument("host", required=False)
@click.option("--to", metavar="DIR", help="Folder on it (default: ~/hostler/PROJECT).")
@click.option("--once", is_flag=True, help="Bring it up to date and return.")
@click.option("--force", is_flag=True, help="Use a folder that holds other files; they are left alone.")
def sync(**given: Any) -> int:
    """Keep a copy of this project on a machine of a fleet: one way, whenever a file is saved, until Ctrl-C.

    A fleet of VMs is its only VM, or FLEET/NAME for one of several (hostler up --keep makes one to work on).
    What .gitignore and .hostlerignore name stays here. What is deleted here is deleted there; what was made
    there is left alone.
    """
    return perform("hostler.cli.machines.sync", given)


@click.command()
@click.argument("host", required=False)
@click.option("--port", type=click.IntRange(1, 65535), help="The port here (default: a free one).")
@click.option(
    "--python", metavar="PATH", help="The Python there that has Jupyter (default: jupyter on its PATH)."
)
@click.option("--classic", is_flag=True, help="The plain notebook instead of JupyterLab.")
@click.option("--no-sync", is_flag=True, help="Don't bring this project along first.")
def notebook(**given: Any) -> int:
    """Open Jupyter on a machine of a fleet, at an address that only this machine can open, until Ctrl-C.

    A fleet of VMs is its only VM, or FLEET/NAME for one of several (hostler up --keep makes one to work on).
    Jupyter must be on the machine already.
    """
    return perform("hostler.cli.machines.notebook", given)


@click.group()
def image() -> None:
    """Build, list and delete images for fleets of VMs (Compute Engine) and of containers (Kubernetes)."""


@image.command("build")
@click.option("--family", metavar="NAME", help="Family of which it becomes the newest image.")
@click.option("--script", type=FilePath(), help="Script that root runs on a VM made for it.")
@click.option(
    "--requirements", is_flag=True, help="Also install the project's packages (without --script: only them)."
)
@click.option("--from", "base", metavar="FAMILY", help="Family to begin with (default: as the fleet's VMs).")
@click.option("--from-project", metavar="ID", help="Project that has that family, if not yours.")
@click.option("--from-vm", metavar="VM", help="Begin with a copy of a VM's disk; what is private is removed.")
@click.option("--timeout", metavar="TIME", default="1h", help="How long it may take (1h).")
@options.site_options
@click.option("--machine", metavar="TYPE", help="Machine type to build on (e2-standard-4).")
@click.option("--gpu", metavar="GPU", help="GPU to build with, like T4:1 (none).")
@click.option("--disk", metavar="SIZE", help="Disk of the image (50GB); VMs need at least that.")
@click.option("--docker", is_flag=True, help="Build a container image instead, by docker or podman.")
@click.option("--tag", metavar="NAME", help="--docker: its name, with its registry: registry/me/train:1.")
@click.option("--base", "docker_base", metavar="IMAGE", help="--docker: image to begin with.")
@click.option("--push/--no-push", default=True, help="--docker: push it to its registry (default), or not.")
@options.yes_option
@options.json_option
def image_build(**given: Any) -> int:
    """Make an image. A script that fails or hangs publishes nothing; the VM is gone in every case.

    \b
    hostler image build --family F --script setup.sh    an image for fleets with `family: F`
    hostler image build --family F                      with the project's packages
    hostler image build --family F --from-vm NAME       of a VM that was set up by hand
    hostler image build --docker --tag registry/me/x:1  of a container, built and pushed
    """
    return perform("hostler.cli.machines.image", given, "build")


@image.command("list")
@click.argument("family", required=False)
@options.site_options
@options.json_option
def image_list(**given: Any) -> int:
    """List images that hostler made, or all of a family; * is what the family means now."""
    return perform("hostler.cli.machines.image", given, "list_")


@image.command("delete")
@click.argument("family")
@click.option("--keep", type=click.IntRange(min=0), default=1, metavar="N", help="Keep the newest N (1).")
@options.site_options
@options.yes_option
def image_delete(**given: Any) -> int:
    """Delete the old images of a family, after asking; what hostler did not make stays."""
    return perform("hostler.cli.machines.image", given, "delete")


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def worker(**given: Any) -> int:
    return perform("hostler.worker.main", {"argv": given["words"]}, "main")


@click.command()
@click.argument("what", required=False, type=click.Choice(["update"]), metavar="[update]")
@options.json_option
def prices(**given: Any) -> int:
    """Show the price table that costs are counted with, and its age.

    `update` writes a newer one for you alone, from the Cloud Billing catalogue of Google. It is used from
    then on in the place of the table that comes with hostler.
    """
    return perform("hostler.cli.machines.prices", given)
