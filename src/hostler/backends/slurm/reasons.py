"""Reasons that a job waits, in plain words: Slurm's codes, each with what a person can do."""

from __future__ import annotations

import re

REASONS = {
    "None": "the scheduler has not looked at it yet",
    "Priority": "jobs with a higher priority come first",
    "Resources": "waits for machines to become free",
    "Dependency": "waits for another job to end",
    "DependencyNeverSatisfied": "waits for a job that failed: it will never start; cancel it",
    "BeginTime": "its start time has not come (a requeued job waits two minutes)",
    "JobArrayTaskLimit": "as many of its array run as `workers` allows",
    "JobHeldUser": "held by you: scontrol release lets it go",
    "JobHeldAdmin": "held by an administrator: ask them",
    "JobHoldMaxRequeue": "was requeued too often and is held: scontrol release lets it go",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition takes no jobs at present",
    "PartitionTimeLimit": "asks for more time than its partition allows: lower `time`",
    "PartitionNodeLimit": "asks for more nodes than its partition has: lower `nodes`",
    "PartitionConfig": "asks for more than its partition has: lower `resources`",
    "NodeNotAvail": "a machine it needs is not available",
    "ReqNodeNotAvail": "a machine it needs is down, drained or reserved",
    "NodeDown": "a machine it needs is down",
    "BadConstraints": "no machine meets `constraint`",
    "InvalidAccount": "its account is not valid: check `account`",
    "InvalidQOS": "its QOS is not valid: check `qos`",
    "AccountNotAllowed": "its account may not use this partition",
    "QOSNotAllowed": "its QOS may not use this partition or account",
    "Reservation": "waits for its reservation",
    "Licenses": "waits for a licence",
    "Cleaning": "its last try is still being cleaned up",
    "Prolog": "its machine is being made ready",
    "launch failed requeued held": "could not be started and is held: scontrol release lets it go",
    "JobLaunchFailure": "could not be started on its machine",
    "NonZeroExitCode": "ended with an error",
    "TimeLimit": "reached its time limit",
    "SystemFailure": "Slurm itself failed",
    "FedJobLock": "waits for another cluster",
    "BurstBufferResources": "waits for room in the burst buffer",
    "BurstBufferStageIn": "its files are being brought",
    "MaxMemPerLimit": "asks for more memory per CPU than is allowed: lower `memory`",
}

_LIMIT = re.compile(r"(QOS|Assoc|Max|Grp)")  # how the reasons begin that are somebody's limit
_LIMITS = (
    ("Submit", "as many jobs as one user may submit are in the queue"),
    ("Wall|Time", "asks for more time than its limit allows: lower `time`"),
    ("Grp", "your group uses all that it may at a time"),
    ("MaxJobs?", "as many jobs run as you may have at a time"),
    ("", "you use all that you may at a time"),
)


def in_words(reason: str) -> str:
    """Plain words for a reason, which is kept beside them so that it can be looked up."""
    bare = reason.strip().strip("()")
    code = re.split(r"[,;:(]", bare)[0].strip()
    words = REASONS.get(bare) or REASONS.get(code)
    if not words and _LIMIT.match(code):
        words = next(text for pattern, text in _LIMITS if re.search(pattern, code))
    if not words:
        return bare
    return f"{words} ({bare})" if bare != "None" else words
