"""The log of a container: whole, its tail, since a moment, or as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator

from hostler.emulators.k8s import moment
from hostler.emulators.k8s.api.message import Answer, Call, Stream
from hostler.emulators.k8s.api.refusal import bad_request
from hostler.emulators.k8s.node.container import Container, Line
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

_PLAIN = "text/plain"


def answer(world: World, pod: Obj, call: Call) -> Answer | Stream:
    with world.lock:
        run = _run(world, pod, call)
    if call.flag("follow"):
        return Stream(_follow(world, run, call), _PLAIN)
    lines = _chosen(run.log.lines, call)
    return Answer(200, b"".join(_text(line, call) for line in lines), {"Content-Type": _PLAIN})


def _run(world: World, pod: Obj, call: Call) -> Container:
    name, spec, sandbox = pod["metadata"]["name"], pod["spec"], world.sandbox(pod)
    names = [container["name"] for container in spec["containers"]]
    first = [container["name"] for container in spec.get("initContainers") or []]
    chosen = call.query.get("container") or (names[0] if len(names) == 1 else "")
    if not chosen:
        text = f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        raise bad_request(f"{text} or one of the init containers: [{' '.join(first)}]" if first else text)
    if chosen not in names + first:
        raise bad_request(f"container {chosen} is not valid for pod {name}")
    runs = sandbox.runs.get(chosen, []) if sandbox else []
    if call.flag("previous"):
        if len(runs) < 2:
            raise bad_request(f'previous terminated container "{chosen}" in pod "{name}" not found')
        return runs[-2]
    if not runs:
        raise bad_request(f'container "{chosen}" in pod "{name}" is waiting to start: {_why(pod, chosen)}')
    return runs[-1]


def _why(pod: Obj, name: str) -> str:
    status = pod["status"]
    for one in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        if one["name"] == name and one["state"].get("waiting"):
            reason = str(one["state"]["waiting"]["reason"])
            failing = {
                "ErrImagePull": "image can't be pulled",
                "ImagePullBackOff": "trying and failing to pull image",
            }
            return failing.get(reason, reason)
    return "ContainerCreating"


def _chosen(lines: list[Line], call: Call) -> list[Line]:
    found, query = list(lines), call.query
    ago, tail = call.number("sinceSeconds"), call.number("tailLines", -1)
    since = None if ago is None else time.time() - ago
    if query.get("sinceTime"):
        since = moment.seconds(query["sinceTime"])
    if since is not None:
        found = [line for line in found if moment.seconds(line.at) >= since]
    return found if tail is None or tail < 0 else found[max(len(found) - tail, 0) :]


def _text(line: Line, call: Call) -> bytes:
    return (line.at.encode() + b" " + line.text) if call.flag("timestamps") else line.text


def _follow(world: World, run: Container, call: Call) -> Iterator[bytes]:
    """Whole lines as they come; an unfinished last one when the container has ended."""
    log = run.log
    with log.grown:
        seen = len(log.lines) - len(_chosen(log.lines, call))
    while not world.closed:
        with log.grown:
            whole = len(log.lines) - (bool(log.lines) and not log.lines[-1].text.endswith(b"\n"))
            until = len(log.lines) if log.closed else whole
            pieces, seen_now, closed = log.lines[seen:until], max(seen, until), log.closed
            if not pieces and not closed:
                log.grown.wait(1.0)
        seen = seen_now
        if pieces:
            yield b"".join(_text(line, call) for line in pieces)
        elif closed:
            return
