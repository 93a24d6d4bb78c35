"""Answers of platforms: what Slurm's commands print, what the APIs of Kubernetes and Google say."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.error import HTTPError
from xml.sax.saxutils import escape

from fuzz_harness import Target, bent, damaged, damaged_text
from hypothesis import strategies as st

from hostler.backends import metadata
from hostler.backends.gce import catalogue, client, names, removal
from hostler.backends.gce.backend import GceBackend
from hostler.backends.gce.client import GceClient
from hostler.backends.gce.wish import quotas
from hostler.backends.kubernetes import earlier_pods
from hostler.backends.kubernetes.backend import KubernetesBackend
from hostler.backends.kubernetes.client import KINDS, KubeClient, _class
from hostler.backends.lsf import backend as lsf
from hostler.backends.pbs import backend as pbs
from hostler.backends.sge import backend as sge
from hostler.backends.slurm import fates, queue, reasons, refusals, states
from hostler.backends.slurm.batch import sweeps_of
from hostler.backends.slurm.host import parse_left
from hostler.spec.project import Fleet

QUEUE = queue.SEPARATOR.join(
    ("71_[3-9,12%4]", "PENDING", "(Priority)", "n1", "1-02:03:04", "x", "name", "hostler p/f s")
)
SACCT = "71_3|OUT_OF_MEMORY|0:125|413568K|cpu=1,mem=400M,node=1|1\n71_3.batch|FAILED|0:9|537.50M||1\n"
SCONTROL = "JobId=74 ArrayJobId=71 ArrayTaskId=3 JobState=NODE_FAIL Reason=x StdOut=/a b\n"
SBATCH = "sbatch: error: Batch job submission failed: Invalid partition name specified\n"
SLURM = Fleet("queue", "slurm", workers=2, scope="cifar")


def _slurm(text: str, folder: Path) -> None:
    for row in queue.parse(text):
        assert row.tasks >= 0
        states.meaning(row.state), reasons.in_words(row.reason), parse_left(row.left), row.array
        sweeps_of(SLURM, row.comment)
    fates.of_accounting(text, "71_3")
    fates.of_controller(text, "71_3")
    refusals.refusal(text)
    parse_left(text)


QSTAT = (
    b"<?xml version='1.0'?><job_info><queue_info><job_list state='pending'><JB_job_number>7</JB_job_number>"
    b"<JB_name>h.a~c</JB_name><state>qw</state><queue_name>all.q@n1</queue_name><tasks>1,3-9:2</tasks>"
    b"<full_job_name>h.a~cifar~tau</full_job_name></job_list></queue_info></job_info>"
)
QSUB, BSUB = "welcome\n7.1-3:1\n71[].server\n", "Job <7> is submitted to queue <normal>.\n"
PBS_JOB = {"Job_Name": "h.a~c", "job_state": "Q", "comment": "Not Running", "exec_host": "n3/0*4"}
BJOBS = lsf.SEPARATOR.join(("7", "3", "PEND", "-", "h.a~c[1-4]%2", "New job is waiting for scheduling;"))


def _spans() -> Any:
    """An answer whose tasks are numbered oddly."""
    spans = damaged_text("1,3-9:2", "5-9:1").map(lambda text: escape(text).encode("utf-8", "replace"))
    return spans.map(lambda span: QSTAT.replace(b"1,3-9:2", span))


def _sge(data: bytes, folder: Path) -> None:
    text = data.decode("utf-8", "replace")
    sge.Sge().job_id(text)
    assert all(task.count >= 1 for task in sge.parse(text))


def _pbs(tree: Any, folder: Path) -> None:
    text = json.dumps(tree, default=str)
    pbs.Pbs().job_id(text)
    for task in pbs.parse("banner\n" + text):
        pbs.Pbs().ending(task, now=False)


def _lsf(text: str, folder: Path) -> None:
    lsf.Lsf().job_id(text)
    for task in lsf.parse(text):
        lsf.Lsf().ending(task, now=False)


GCE = Fleet("burst", "gce", workers=2, scope="cifar", options={"project": "p", "zones": ["us-central1-a"]})
LABELS = {"hostler-project": "cifar", "hostler-fleet": "burst", "hostler-store": "ab", "hostler-launch": "1"}
VM = {
    "name": "hostler-cifar-burst-1-abcd",
    "status": "RUNNING",
    "zone": "https://x/zones/us-central1-a",
    "labels": LABELS,
    "description": json.dumps(LABELS),
    "creationTimestamp": "2026-11-18T07:00:00.000-08:00",
    "disks": [{"source": "https://x/disks/d", "boot": True}],
    "metadata": {"items": [{"key": "a", "value": "b"}]},
}
GROUP = {**VM, "region": "https://x/regions/us-central1", "targetSize": 2, "status": {"isStable": True}}
OPERATION = {
    "name": "o",
    "status": "DONE",
    "zone": "x/zones/z",
    "targetLink": "a/b",
    "operationType": "insert",
}
FAILED = {**OPERATION, "error": {"errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota exceeded"}]}}
QUOTA = {"metric": "CPUS", "limit": 8.0, "usage": 1.0}
PAGES: tuple[Any, ...] = (
    {"items": [VM, GROUP], "nextPageToken": ""},
    {"items": {"zones/a": {"instances": [VM], "disks": [VM], "instanceGroupManagers": [GROUP]}}},
    {"items": [{"name": "us-central1", "quotas": [QUOTA]}], "quotas": [QUOTA]},
    {"managedInstances": [{"instance": "x/i", "currentAction": "NONE", "lastAttempt": {"errors": {}}}]},
    OPERATION,
    FAILED,
)
SKU = {
    "description": "N1 Predefined Instance Core running in Americas",
    "category": {"resourceFamily": "Compute", "resourceGroup": "N1Standard", "usageType": "OnDemand"},
    "serviceRegions": ["us-central1"],
    "pricingInfo": [
        {
            "pricingExpression": {
                "usageUnit": "h",
                "tieredRates": [{"unitPrice": {"units": "0", "nanos": 31611000}}],
            }
        }
    ],
}
REFUSED = {"error": {"code": 403, "message": "no", "errors": [{"reason": "quotaExceeded"}], "status": "X"}}


class Clock:
    """Any wait is over at once, and the patience of those who ask again ends."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 100.0
        return self.now


@contextmanager
def answering(data: bytes, status: int = 200) -> Any:
    """Google's servers say this, whatever they are asked."""

    def answer(request: Any, timeout: float) -> Any:
        if status != 200:
            raise HTTPError(request.full_url, status, "no", {}, io.BytesIO(data))  # type: ignore[arg-type]
        return io.BytesIO(data)

    with mock.patch.object(client, "urlopen", answer):
        yield


def client_without_pause(fleet: Fleet | None = None) -> GceClient:
    return GceClient("p", pause=lambda seconds: None, clock=Clock())


def _google(given: tuple[bytes, int], folder: Path) -> None:
    backend = GceBackend(connect=client_without_pause, pause=lambda seconds: None)
    reached = client_without_pause()
    questions = (
        lambda: backend.list(GCE),
        lambda: backend.remains(GCE),
        lambda: backend.remains(GCE, everywhere=True),
        lambda: backend.lives(GCE, 1, 1e9),
        lambda: backend.images(GCE),
        lambda: backend.leavings(GCE),
        lambda: quotas.ask(reached),
        lambda: list(removal.described(reached)),
        lambda: [names.described(one) for one in reached.list("x")],
        lambda: list(reached.managed("g")),
        lambda: reached.insert("x", {"name": "a"}),
    )
    with answering(*given):
        _ask_all(questions)


def _ask_all(questions: Any) -> None:
    """All of them, though one is answered by an error; the last error is the answer."""
    from hostler.errors import HostlerError

    last: HostlerError | None = None
    for ask in questions:
        try:
            ask()
        except HostlerError as error:
            last = error
    if last is not None:
        raise last


def _as_answer(strategy: Any) -> Any:
    data = strategy.map(lambda tree: json.dumps(tree, default=str).encode())
    return st.tuples(data, st.just(200))


def _catalogue(tree: Any, folder: Path) -> None:
    with answering(json.dumps({"skus": tree}, default=str).encode()):
        catalogue.rates(client_without_pause().get("skus").get("skus") or ())


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "hostler-a-0-abcde", "labels": LABELS, "annotations": {"a": "b"}},
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "worker"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    },
    "status": {
        "phase": "Pending",
        "reason": "Evicted",
        "message": "ephemeral local storage",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "message": "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu.",
            }
        ],
        "containerStatuses": [
            {
                "name": "worker",
                "state": {
                    "waiting": {"reason": "ErrImagePull", "message": "x"},
                    "terminated": {"exitCode": 3},
                },
            }
        ],
    },
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "hostler-a", "labels": LABELS, "annotations": {"hostler": "x"}},
    "spec": {"completions": 3, "suspend": False},
    "status": {
        "succeeded": 1,
        "failedIndexes": "0,2-4",
        "conditions": [{"type": "Failed", "status": "True"}],
    },
}
STATUS = {"kind": "Status", "reason": "Forbidden", "message": 'pods is forbidden: User "x"', "code": 403}
PODS = Fleet("pods", "kubernetes", workers=2, scope="cifar", options={"context": "c"})


class Cluster:
    """An API server behind lightkube's own transport that says one thing, whatever it is asked."""

    def __init__(self, data: bytes, status: int) -> None:
        self._data, self._status = data, status

    def __call__(self, request: Any) -> Any:
        import httpx2

        return httpx2.Response(self._status, content=self._data, headers={"content-type": "application/json"})


def kube(data: bytes, status: int) -> KubeClient:
    import httpx2
    import lightkube
    from lightkube.config.kubeconfig import KubeConfig

    told = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    api = lightkube.Client(KubeConfig.from_dict(told), namespace="n")
    api._client._client = httpx2.Client(
        transport=httpx2.MockTransport(Cluster(data, status)), base_url="http://127.0.0.1:1"
    )
    kinds = {kind: _class(kind, *where) for kind, where in KINDS.items()}
    return KubeClient(api, kinds, "n", "c", "http://127.0.0.1:1", pause=lambda seconds: None)


def _kubernetes(given: tuple[bytes, int], folder: Path) -> None:
    reached = kube(*given)
    backend = KubernetesBackend(connect=lambda fleet: reached, pause=lambda seconds: None)
    _ask_all(
        (
            lambda: backend.list(PODS),
            lambda: backend.remains(PODS),
            lambda: backend.remains(PODS, everywhere=True),
            lambda: backend.standing(PODS),
            lambda: reached.find("Job", "x"),
            lambda: reached.may("get", "", "pods"),
        )
    )


def _earlier(tree: Any, folder: Path) -> None:
    (folder / "pods.json").write_text(json.dumps(tree, default=str))
    with mock.patch.object(earlier_pods, "_listed", lambda place: tree.get("items", ())):
        earlier_pods.note_ends(str(folder), str(folder))
    earlier_pods.end_of("x", str(folder))


def _metadata(data: bytes, folder: Path) -> None:
    with mock.patch.object(metadata, "fetch", lambda request, **given: data):
        try:
            metadata.Token()()
        except ConnectionError:  # as if nobody had answered
            pass


TARGETS = (
    Target(
        "slurm",
        "what squeue, sacct, scontrol and sbatch print",
        lambda: damaged_text(QUEUE, SACCT, SCONTROL, SBATCH, "1-02:03:04"),
        _slurm,
    ),
    Target(
        "grid-engine",
        "what Grid Engine's qstat and qsub print",
        lambda: damaged([QSTAT, QSUB.encode()]) | _spans(),
        _sge,
    ),
    Target(
        "pbs",
        "what qstat of PBS prints",
        lambda: bent([{"Jobs": {"7[].srv": PBS_JOB, "8.srv": PBS_JOB}}]),
        _pbs,
    ),
    Target("lsf", "what bjobs and bsub print", lambda: damaged_text(BJOBS, BSUB), _lsf),
    Target("google", "answers of Compute Engine", lambda: _as_answer(bent(PAGES)), _google),
    Target(
        "google-refusals",
        "its refusals, and pages of proxies",
        lambda: st.tuples(
            damaged([json.dumps(REFUSED).encode(), b"<html>no</html>"]), st.sampled_from([200, 400, 403, 404])
        ),
        _google,
    ),
    Target("google-prices", "the catalogue of prices", lambda: bent([[SKU, SKU]]), _catalogue),
    Target(
        "kubernetes",
        "answers of Kubernetes",
        lambda: _as_answer(bent([{"items": [POD, POD], "metadata": {}}, {"items": [JOB]}, JOB, POD])),
        _kubernetes,
    ),
    Target(
        "kubernetes-refusals",
        "its refusals, and pages of proxies",
        lambda: st.tuples(
            damaged([json.dumps(STATUS).encode(), b"<html>no</html>"]), st.sampled_from([200, 401, 403, 404])
        ),
        _kubernetes,
    ),
    Target(
        "earlier-pods",
        "pods of its Job, as a pod asks",
        lambda: bent([{"items": [POD]}]).filter(lambda tree: isinstance(tree, dict)),
        _earlier,
    ),
    Target(
        "metadata",
        "Google's metadata server",
        lambda: damaged([b'{"access_token": "t", "expires_in": 3599, "token_type": "Bearer"}']),
        _metadata,
    ),
)
