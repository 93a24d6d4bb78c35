"""Refusals of `sbatch`, and what follows: fewer tasks, smaller arrays, once more, or a clear end.

The texts are those of Slurm's own error table; sites put lines of their own around them.
"""

from __future__ import annotations

import re

from hostler.frozen import dataclass

AGAIN, FEWER, SMALLER, NO = "again", "fewer", "smaller", "no"


@dataclass(frozen=True)
class Refusal:
    what: str  # again, fewer (tasks at a time), smaller (arrays) or no
    message: str
    hint: str = ""


_KNOWN = (
    (r"invalid job array specification", Refusal(SMALLER, "the array is larger than this site allows")),
    (
        r"(QOS|Assoc|Account)\w*(Submit|SubmitJob)\w*|job violates accounting/QOS policy \(job submit limit",
        Refusal(FEWER, "as many jobs as you may submit are in the queue"),
    ),
    (
        r"job violates accounting/QOS policy",
        Refusal(NO, "the job is over a limit of your account or QOS", "lower workers, time or resources"),
    ),
    (
        r"invalid partition name|invalid partition specified",
        Refusal(NO, "the partition does not exist", "sinfo -s lists them; set `partition`"),
    ),
    (
        r"no partition specified or system default",
        Refusal(NO, "this site has no default partition", "sinfo -s lists them; set `partition`"),
    ),
    (
        r"invalid account|account/partition combination",
        Refusal(
            NO, "the account is not valid here", "sacctmgr show assoc user=$USER lists yours; set `account`"
        ),
    ),
    (r"invalid qos", Refusal(NO, "the QOS is not valid here", "sacctmgr show qos lists them; set `qos`")),
    (
        r"invalid feature|invalid constraint",
        Refusal(NO, "no machine has that feature", "sinfo -o %f lists them; set `constraint`"),
    ),
    (
        r"invalid (generic resource|gres|trackable resource)|gres.* (not|un)",
        Refusal(NO, "this site does not know that GPU", "sinfo -o %G lists the GPUs; set `gres`"),
    ),
    (
        r"requested time limit is invalid|time limit (specification|exceeds)",
        Refusal(
            NO, "the time limit is longer than the partition's", "sinfo -o '%P %l' shows it; lower `time`"
        ),
    ),
    (
        r"requested node configuration is not available|more processors requested|memory specification",
        Refusal(NO, "no machine is large enough", "sinfo -N -l shows them; lower `resources`"),
    ),
    (
        r"access/permission denied|user's group not permitted|not permitted to use",
        Refusal(NO, "you may not use that partition or account", "ask the site, or choose another"),
    ),
    (
        r"socket timed out|unable to contact slurm controller|temporarily unable|resource temporarily"
        r"|slurm backup controller|connection refused|zero bytes were transmitted"
        r"|slurmctld.*(busy|not responding)",
        Refusal(AGAIN, "Slurm's controller does not answer"),
    ),
    (
        r"maximum number of jobs|job count limit|slurm temporarily unable to accept job",
        Refusal(AGAIN, "Slurm's queue is full"),
    ),
    (
        r"batch script is empty|first line must start",
        Refusal(NO, "the sbatch script is not a valid script", "set `script`"),
    ),
    (r"no space left|disk quota exceeded", Refusal(NO, "the disk is full", "free space, or set `cache`")),
)


def refusal(stderr: str) -> Refusal:
    """Meaning of sbatch's complaint; an unknown one is shown as it is."""
    for pattern, found in _KNOWN:
        if re.search(pattern, stderr, re.IGNORECASE):
            return Refusal(found.what, f"{found.message}: {_line(stderr)}", found.hint)
    return Refusal(
        NO, f"sbatch refused: {_line(stderr)}", "sbatch's manual has its options; `header` adds some"
    )


def _line(stderr: str) -> str:
    """The line that says it, without sbatch's own prefix."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    said = [re.sub(r"^sbatch:\s*(error:\s*)?", "", line) for line in errors or lines]
    telling = [line for line in said if not line.lower().startswith("batch job submission failed")]
    return "; ".join(dict.fromkeys(telling or said)) or "no reason given"
