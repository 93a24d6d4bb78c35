"""Commands that start the processes of a node themselves: torchrun, and `accelerate launch`. Pure.

Each is started once per node and is told of the gang: torchrun by its own variables, `accelerate launch`,
which reads none, by options. Options of the user's come after these, and count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath

from hostler.records.run.gang import GangStart
from hostler.worker.gang.ranks import board

TORCHRUN = ("torch.distributed.run", "torch.distributed.launch")
SHELLS = ("bash", "sh", "zsh", "dash")
IN_TEXT = re.compile(  # where a command of a shell's text begins
    r"(?:^|[;&|\n(]|\bexec\s)\s*(?:\w+=\S*\s+)*(?:\S*/)?(?:torchrun\b|\S+\s+-m\s+torch\.distributed\.(?:run|launch)\b)"
)
CPU = {"--cpu", "--use_cpu"}
KINDS = {  # options of `accelerate launch` that say how the processes train together
    *("--multi_gpu", "--tpu", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--config_file"),
    "--use_parallelism_config",
}


def is_launcher(command: Sequence[str]) -> bool:
    """Whether this command starts several processes. An `accelerate launch` that is told to use CPUs alone
    starts one, as any other command."""
    if at := _accelerate(command):
        return not CPU & _options(command[at:])
    if text := _shell_text(command):
        return bool(IN_TEXT.search(text))
    return any(PurePath(word).name == "torchrun" for word in command[:3]) or any(
        flag == "-m" and module in TORCHRUN for flag, module in pairwise(command)
    )


def _shell_text(command: Sequence[str]) -> str:
    """The text that a command hands to a shell: that of `bash -c TEXT`; '' of any other command."""
    is_shell = len(command) > 2 and PurePath(command[0]).name in SHELLS
    return command[2] if is_shell and re.fullmatch(r"-[a-z]*c", command[1]) else ""


def variables(go: GangStart, node: int, procs: int) -> dict[str, str]:
    """Variables that a torchrun reads its options from; an `accelerate launch` is one within."""
    first = go.nodes[0]
    return {
        "PET_NNODES": str(len(go.nodes)),
        "PET_NODE_RANK": str(node),
        "PET_NPROC_PER_NODE": str(procs),
        "PET_MASTER_ADDR": first.address,
        "PET_MASTER_PORT": str(first.ports[0]),
        **board(go),
    }


def command(given: Sequence[str], go: GangStart, node: int, procs: int) -> tuple[str, ...]:
    """The launcher's command, with the options that it needs."""
    at, first = _accelerate(given), go.nodes[0]
    if not at:
        return tuple(given)
    told = {
        "--num_machines": len(go.nodes),
        "--machine_rank": node,
        "--num_processes": len(go.nodes) * procs,
        "--main_process_ip": first.address,
        "--main_process_port": first.ports[0],
    }
    words = [str(word) for option in told.items() for word in option]
    kind = [] if KINDS & _options(given[at:]) else ["--multi_gpu"]  # else it starts one process
    return (*given[:at], *words, *kind, "--same_network", *given[at:])


def _accelerate(given: Sequence[str]) -> int:
    """Where the options of an `accelerate launch` begin; 0 if the command is none."""
    for at, word in enumerate(given[:3], start=1):
        name = PurePath(word).name
        if name == "accelerate-launch" or word == "accelerate.commands.launch":
            return at
        if name == "accelerate" and given[at : at + 1] in (["launch"], ("launch",)):
            return at + 1
    return 0


def _options(words: Sequence[str]) -> set[str]:
    """Names of the options before the script, in the form that `--help` shows."""
    end = next((n for n, one in enumerate(words) if one.endswith(".py") or one in ("-m", "--module")), None)
    named = [word.partition("=")[0] for word in words[:end] if word.startswith("--")]
    return {"--" + one[2:].replace("-", "_") for one in named}
