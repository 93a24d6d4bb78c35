"""Several real workers on this machine that train one model together, and scripts that show who they are."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hostler.spec.job import Job, Resources
from hostler.worker.loop import Worker
from worker_world import World

MEETS = """
import json, os, socket, sys, time
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK")
mine = {name: int(os.environ[name]) for name in names}
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
rank, world = mine["RANK"], mine["WORLD_SIZE"]
if rank == 0:
    with socket.create_server(where) as server:
        guests = [server.accept()[0] for _ in range(world - 1)]
        told = [json.loads(guest.recv(4096)) for guest in guests]
        for guest in guests:
            guest.sendall(b"bye")
    print("met " + json.dumps(sorted(told + [rank])), flush=True)
else:
    for _ in range(500):
        try:
            line = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.02)
    line.sendall(json.dumps(rank).encode())
    assert line.recv(10) == b"bye"
print("mine " + json.dumps(mine), flush=True)
"""  # ranks that meet at MASTER_PORT, and say who they are


def gang(nodes: int, procs: int = 1, **more: Any) -> Resources:
    return Resources(nodes=nodes, procs_per_node=procs, **more)


@contextmanager
def team(world: World, count: int, **given: Any) -> Iterator[list[Worker]]:
    """So many workers beside the test; told to leave at its end, if they have not."""
    with ExitStack() as stack:
        yield [stack.enter_context(world.working(**given)) for _ in range(count)]


def work_together(world: World, count: int, seconds: float = 60, **given: Any) -> list[int]:
    """So many workers, to their ends: their exit codes."""
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(world.work(**given))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), world.said
    return codes


def told(world: World, job: Job, word: str, index: int = 0) -> list[Any]:
    """What the ranks printed as JSON after this word."""
    return [json.loads(text) for text in re.findall(rf"^{word} (.*)$", world.log(job, index), re.MULTILINE)]
