"""Every node's kubelet: it runs the containers of the pods bound to its node, and reports on them."""

from __future__ import annotations

import fnmatch
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler.emulators.k8s.controllers import deletion, events
from hostler.emulators.k8s.node import ending, network, volumes
from hostler.emulators.k8s.node.container import Container, LastWords
from hostler.emulators.k8s.node.environment import Find, Unready, expand, variables
from hostler.emulators.k8s.node.podstatus import FINISHED, describe
from hostler.emulators.k8s.node.sandbox import Sandbox, Waiting
from hostler.emulators.k8s.resources import CONFIG_MAPS, PODS, SECRETS, SERVICES
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import Image, World

BY = "kubelet"
AUTHORITY = "kube-root-ca.crt"  # a ConfigMap that every namespace has
_WORDS = "last-words"
_NO_NAME = 'failed to parse image reference "{}": invalid reference format: repository name must be lowercase'
_NO_ANSWER = (
    'failed to pull and unpack image "{image}": failed to resolve reference "{image}": failed to do request: '
    'Head "https://{host}/v2/{path}/manifests/{tag}": dial tcp 127.0.0.1:443: connect: connection refused'
)
_RETRY = 0.2  # seconds until a missing Secret or address is looked for again


def sync(world: World) -> float | None:
    """When to look again at the latest."""
    pods = world.storage.all(PODS)
    living = {pod["metadata"]["uid"] for pod in pods}
    for uid in [sandbox for sandbox in world.sandboxes if sandbox not in living]:
        _discard(world, uid)
    dues = [_pod(world, pod) for pod in pods if pod["spec"].get("nodeName")]
    _write_hosts(world)
    return min((due for due in dues if due is not None), default=None)


def _pod(world: World, pod: Obj) -> float | None:
    if pod["spec"]["nodeName"] in world.silent:
        return None
    if pod["status"]["phase"] in FINISHED:
        deletion.settle(world, pod)
        return None
    sandbox = world.sandbox(pod) or _open(world, pod)
    if sandbox is None:
        return world.clock() + _RETRY
    due = ending.begin(world, pod, sandbox)
    phase = ""
    if sandbox.deadline is not None:
        due, phase = ending.proceed(world, pod, sandbox)
    else:
        due, phase = _earlier(due, _advance(world, pod, sandbox)), _over(pod, sandbox)
        if phase and sandbox.living():  # sidecars go once all else is done
            ending.ask(world, pod, sandbox)
            due, phase = world.clock(), ""
    fresh = world.storage.put(describe(pod, sandbox, world.network.node, world.clock(), phase))
    if phase:
        deletion.settle(world, fresh)
    return due


def _open(world: World, pod: Obj) -> Sandbox | None:
    address = world.network.take()
    if address is None:
        return None
    folder = world.root / "pods" / pod["metadata"]["uid"]
    folder.mkdir(parents=True)
    begins = world.clock() + world.pace.start
    sandbox = Sandbox(folder, address, begins, world.logs)
    sandbox.hosts.touch()
    world.sandboxes[pod["metadata"]["uid"]] = sandbox
    return sandbox


def _discard(world: World, uid: str) -> None:
    sandbox = world.sandboxes.pop(uid)
    sandbox.discard()
    world.network.give_back(sandbox.address)


def _advance(world: World, pod: Obj, sandbox: Sandbox) -> float | None:
    """Start what is due to start; when the next thing is."""
    now, spec = world.clock(), pod["spec"]
    if now < sandbox.begins:
        return sandbox.begins
    for container in spec.get("initContainers") or []:
        due = _attend(world, pod, sandbox, container, first=True)
        run = sandbox.last(container["name"])
        sidecar = container.get("restartPolicy") == "Always"
        if run is None or (run.running and not sidecar) or (not run.running and (run.code or run.error)):
            return due
    dues = [_attend(world, pod, sandbox, one, first=False) for one in spec["containers"]]
    return min((due for due in dues if due is not None), default=None)


def _attend(
    world: World, pod: Obj, sandbox: Sandbox, container: Mapping[str, Any], first: bool
) -> float | None:
    name, now = container["name"], world.clock()
    run = sandbox.last(name)
    if run is not None and (run.running or not _again(pod, container, run, first)):
        return None
    if run is not None and name not in sandbox.waiting:
        wait = min(world.pace.restart * 2 ** (len(sandbox.runs[name]) - 1), world.pace.backoff_max)
        text = f"back-off {wait:g}s restarting failed container={name} pod={_where(pod, '_')}"
        sandbox.waiting[name] = Waiting("CrashLoopBackOff", text)
        sandbox.retry[name] = now + wait
    if now < sandbox.retry.get(name, 0.0):
        return sandbox.retry[name]
    return _start(world, pod, sandbox, container)


def _again(pod: Obj, container: Mapping[str, Any], run: Container, first: bool) -> bool:
    policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy", "Always")
    failed = bool(run.code or run.error)
    return (
        policy != "Never" and failed
        if first and policy != "Always"
        else (policy == "Always" or (policy == "OnFailure" and failed))
    )


def _start(world: World, pod: Obj, sandbox: Sandbox, container: Mapping[str, Any]) -> float | None:
    name = container["name"]
    try:
        _pull(world, pod, sandbox, container)
        order = _order(world, pod, sandbox, container)
    except Unready as error:
        return _wait(world, pod, sandbox, name, error)
    sandbox.waiting.pop(name, None)
    own, fallback = Path(order["folder"]) / _WORDS, "FallbackToLogsOnError"
    words = LastWords(own, container.get("terminationMessagePolicy") == fallback)
    run = Container(order, sandbox.new_log(), world.poke, words)
    sandbox.runs.setdefault(name, []).append(run)
    for word in ("Created", "Started"):
        events.record(world, pod, events.NORMAL, word, f"Container {word.lower()}", BY)
    return None


def _wait(world: World, pod: Obj, sandbox: Sandbox, name: str, error: Unready) -> float:
    wait = world.pace.pull if "Image" in error.reason else _RETRY
    sandbox.retry[name] = world.clock() + wait
    known = sandbox.waiting.get(name)
    if error.reason:
        sandbox.waiting[name] = Waiting(error.reason, error.message)
    if known is None or known.message != error.message:
        events.record(
            world, pod, events.WARNING, "Failed" if error.reason else "FailedMount", error.message, BY
        )
    return sandbox.retry[name]


def _pull(world: World, pod: Obj, sandbox: Sandbox, container: Mapping[str, Any]) -> None:
    image = container["image"]
    why = next((text for word, text in world.unpullable.items() if fnmatch.fnmatchcase(image, word)), None)
    if image.rpartition(":")[0].lower() != image.rpartition(":")[0]:
        raise Unready(_NO_NAME.format(image), "ErrImagePull")
    if why is None:
        return
    if container.get("imagePullPolicy") == "Never":
        said = f'Container image "{image}" is not present with pull policy of Never'
        raise Unready(said, "ErrImageNeverPull")
    why = why or _no_answer(image)
    tries = sandbox.pulls[image] = sandbox.pulls.get(image, 0) + 1
    if tries % 2:
        raise Unready(why, "ErrImagePull")
    raise Unready(f'Back-off pulling image "{image}": ErrImagePull: {why}', "ImagePullBackOff")


def _no_answer(image: str) -> str:
    """Containerd's words for an image whose registry is not there."""
    place, _, tag = image.rpartition(":")
    host, _, path = place.partition("/")
    return _NO_ANSWER.format(image=image, host=host, path=path, tag=tag)


def _order(world: World, pod: Obj, sandbox: Sandbox, container: Mapping[str, Any]) -> dict[str, Any]:
    find = _finder(world, pod)
    own = (
        sandbox.folder / "containers" / f"{container['name']}-{len(sandbox.runs.get(container['name'], []))}"
    )
    own.mkdir(parents=True, exist_ok=True)
    places = volumes.prepare(pod, sandbox.folder, world.root / "claims", find)
    image = world.images.get(container["image"], Image())
    fresh = describe(pod, sandbox, world.network.node, world.clock())
    host, port = world.server
    served = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}
    env = variables(fresh, container, {**image.env, **served}, find)
    command = container.get("command") or list(image.entrypoint)
    args = container.get("args") or ([] if container.get("command") else list(image.cmd))
    argv = [expand(word, env) for word in [*command, *args]]
    if not argv:
        raise Unready("no command specified", "CreateContainerError")
    return {
        "argv": argv,
        "env": env,
        "cwd": container.get("workingDir") or "/",
        "hostname": env["HOSTNAME"],
        "folder": str(own),
        "mounts": [*volumes.mounts(container, places, own, sandbox.hosts), _last_words(container, own)],
    }


def _last_words(container: Mapping[str, Any], own: Path) -> dict[str, Any]:
    (own / _WORDS).touch()
    return {"source": str(own / _WORDS), "target": container["terminationMessagePath"]}


def _finder(world: World, pod: Obj) -> Find:
    namespace, kinds = pod["metadata"]["namespace"], {"Secret": SECRETS, "ConfigMap": CONFIG_MAPS}

    def find(kind: str, name: str) -> Obj | None:
        if kind == "Token":
            token = world.issue(f"system:serviceaccount:{namespace}:{name}")
            return {"kind": kind, "data": {"token": token}}
        if (kind, name) == ("ConfigMap", AUTHORITY):
            return {"kind": kind, "data": {"ca.crt": world.authority}}
        return world.storage.find(kinds[kind], namespace, name)

    return find


def _over(pod: Obj, sandbox: Sandbox) -> str:
    """The phase that a pod has ended in; nothing if it goes on."""
    spec = pod["spec"]
    for container in spec.get("initContainers") or []:
        run = sandbox.last(container["name"])
        if run is not None and not run.running and (run.code or run.error):
            return "" if _again(pod, container, run, first=True) else "Failed"
    runs = [sandbox.last(one["name"]) for one in spec["containers"]]
    for container, run in zip(spec["containers"], runs, strict=True):
        if run is None or run.running or _again(pod, container, run, first=False):
            return ""
    return "Failed" if any(run and (run.code or run.error) for run in runs) else "Succeeded"


def _write_hosts(world: World) -> None:
    """In place, as the files are bound into the containers."""
    pods, services = world.storage.all(PODS), world.storage.all(SERVICES)
    for pod in pods:
        sandbox = world.sandbox(pod)
        if sandbox is None or pod["status"]["phase"] in FINISHED:
            continue
        text = network.hosts_file(pod, sandbox.address, pods, services)
        if sandbox.hosts.read_text() != text:
            sandbox.hosts.write_text(text)


def _where(pod: Obj, between: str) -> str:
    return f"{pod['metadata']['name']}{between}{pod['metadata']['namespace']}"


def _earlier(one: float | None, other: float | None) -> float | None:
    return min((due for due in (one, other) if due is not None), default=None)


def stop(world: World) -> None:
    """The end of the cluster: nothing of any pod is left."""
    for sandbox in world.sandboxes.values():
        sandbox.send(signal.SIGKILL)
    for uid in list(world.sandboxes):
        _discard(world, uid)
