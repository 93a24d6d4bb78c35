"""A pod's worker that cannot begin tells its Job by its exit code what comes next."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.kubernetes import host as pod_host
from hostler.backends.kubernetes.earlier_pods import NOTE, ends_of
from hostler.backends.kubernetes.host import UNFIT, UNUSABLE, KubernetesHost
from hostler.errors import (
    DamagedError,
    HostlerError,
    MachineError,
    MissingError,
    StoreError,
    StoreUnreachable,
    UsageError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreError("refused"), UNUSABLE),
        (MissingError("no store"), UNUSABLE),
        (UsageError("no such word"), UNUSABLE),
        (DamagedError("not what was written"), UNUSABLE),
        (MachineError("the disk is full"), UNFIT),
        (StoreUnreachable("silent"), 75),
    ],
)
def test_error_before_the_worker_starts_decides_the_jobs_code(error: HostlerError, code: int) -> None:
    assert KubernetesHost().exit_code(error) == code


def test_pod_of_an_index_has_its_jobs_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KubernetesHost().place() == ("", 0), "no pod of an Indexed Job"
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    assert KubernetesHost().place(lambda: 1000.7) == (os.uname().nodename, 1000)


DISK = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "


def ended(name: str, reason: str = "Error", code: int = 137, **status: Any) -> dict[str, Any]:
    over = {"name": "worker", "state": {"terminated": {"exitCode": code, "reason": reason}}}
    return {"metadata": {"name": name}, "status": {"containerStatuses": [over], **status}}


def test_pods_status_tells_memory_from_preemption() -> None:
    moved = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    crowded = ended("crowded", conditions=moved)
    crowded["status"] |= {"reason": "Evicted", "message": "The node was low on resource: memory. "}
    pods = [
        ended("whole", "OOMKilled"),
        ended("child", "OOMKilled", 70),  # cgroup v1: a child was killed, and the worker left by its own code
        ended("moved", conditions=moved),
        ended("killed"),
        crowded,
        {"metadata": {"name": "waits"}, "status": {}},
        {"metadata": {"name": "bare"}},
    ]
    told = {"whole": "memory", "child": "memory", "moved": "preempted", "crowded": "preempted"}
    assert ends_of(pods) == told


@pytest.mark.parametrize(
    ("message", "end"),
    [
        (DISK, f"disk-full: {DISK.strip()}"),
        ('Usage of EmptyDir volume "v" exceeds the limit "1Gi". ', "disk-full: Usage of EmptyDir volume"),
        (
            'Container worker exceeded its local ephemeral storage limit "1Gi". ',
            "disk-full: Container worker",
        ),
        ("Pod was rejected", "evicted"),
        ("", "evicted"),
    ],
)
def test_evicted_pods_end_has_the_kubelets_words(message: str, end: str) -> None:
    pod = ended("full")
    pod["status"] |= {"reason": "Evicted", "message": message}
    [told] = ends_of([pod]).values()
    assert told.startswith(end)


def test_worker_reads_how_an_earlier_pod_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_host, "HOME", str(tmp_path))
    host = KubernetesHost()
    assert host.job() == "" and host.fate("kubernetes j-0-abcde") == "", "nobody told"
    monkeypatch.setenv("HOSTLER_POD", "j-0-fghij")
    assert host.job() == "kubernetes j-0-fghij"
    (tmp_path / NOTE).write_text(json.dumps({"j-0-abcde": "memory"}))
    assert host.fate("kubernetes j-0-abcde") == "memory"
    assert host.fate("slurm c j-0-abcde") == host.fate("kubernetes j-1-abcde") == host.fate("") == ""
