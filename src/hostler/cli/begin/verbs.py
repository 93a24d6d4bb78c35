"""Options of the verbs under "Begin": all that their `--help` loads."""

from __future__ import annotations

from typing import Any

import click

from hostler.cli import options
from hostler.cli.options import FilePath, perform

HERE, GCE = "here", "gce"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("folder", required=False, type=FilePath(), default=".")
@click.option("--template", type=click.Choice(["trainer"]), help="Also write a working trainer to edit.")
@click.option(
    "--fleet",
    "fleets",
    multiple=True,
    metavar="BACKEND",
    help="Add a fleet of this backend, filled in with what is found here (repeatable).",
)
@options.yes_option
@options.json_option
def init(**given: Any) -> int:
    """Write hostler.yaml, sweep.yaml, setup.sh and a README into a folder; nothing is overwritten.

    A cluster, hosts of ~/.ssh/config or credentials that it finds become a fleet in hostler.yaml, filled in
    but switched off. --fleet slurm (or ssh, sge, pbs, lsf, gce, kubernetes, local) adds one that is on,
    also to a hostler.yaml that is there already.
    """
    return perform("hostler.cli.begin.init", given)


@click.command()
@click.argument("where", type=click.Choice([HERE, GCE]), default=HERE)
@click.option(
    "--folder",
    type=FilePath(file_okay=False),
    help="Folder for the demo's project (default: .hostler-demo, for gce .hostler-demo-gce).",
)
def demo(**given: Any) -> int:
    """Run six small runs here and kill a worker on the way. Takes about 20 seconds.

    `hostler demo gce` runs four on two spot VMs of a Google that is emulated here, and takes one of them
    away. Nothing leaves this machine, and nothing costs money.
    """
    return perform("hostler.cli.begin.demo", given)


@click.command()
@click.option("--remove", is_flag=True, help="Remove leftovers in clouds that no fleet needs; asks first.")
@options.yes_option
@options.store_option
@options.json_option
def doctor(**given: Any) -> int:
    """Check store, machine, tools, credentials, versions, and the machines of fleets.

    ok: it is there and works. none: it is not here, which is fine. warn, bad: the next line says what to do.
    Exits with 1 if anything is bad.
    """
    return perform("hostler.cli.begin.doctor", given)


@click.command()
@click.argument("file", type=FilePath())
@click.argument("to", required=False)
@options.store_option
@options.yes_option
@options.json_option
def import_(**given: Any) -> int:
    """Convert a search or machine file of another tool into hostler's; TO is a file, or - for the screen.

    \b
    clouDL               the folder that clouDL_create made, as a project: hostler.yaml, sweep.yaml;
                         or hyperparameters.json, configs.json alone
    experiment-starter   job files (job_details, parameters with LIST)
    Weights & Biases     sweep files
    burst training       train.sh, which starts a VM by gcloud with arguments as metadata
    TensorFlow on GKE    settings.yaml
    SkyPilot, dstack     a task
    Kubeflow             a PyTorchJob or TrainJob
    Slurm                a job script with #SBATCH lines; its array becomes a sweep
    docker-compose       the service that trains
    W&B launch           a launch config

    A folder becomes a project in this folder, or in TO; --store is the one that it uses. What is there
    already is overwritten only if you agree. `hostler sweep` and `plan` also take search files as they are.
    """
    return perform("hostler.cli.begin.import_", given)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(**given: Any) -> int:
    """Print the script by which a shell completes verbs, options, sweeps, fleets and files.

    \b
    eval "$(hostler completion bash)"                                in ~/.bashrc
    eval "$(hostler completion zsh)"                                 in ~/.zshrc, after compinit
    hostler completion fish > ~/.config/fish/completions/hostler.fish
    """
    return perform("hostler.cli.begin.completion", given)
