"""Several real workers on this machine that train one model together, and scripts that show who they are."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

import servers
from hostler.spec.job import Job, Resources
from hostler.worker.loop import Worker
from worker_world import World

MEETS = """
import json, os, socket, sys, time
def say(word, what):
    os.write(1, f"{word} {json.dumps(what)}\\n".encode())  # whole lines, whoever else writes
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
    say("met", sorted(told + [rank]))
else:
    for _ in range(500):
        try:
            line = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.02)
    line.sendall(json.dumps(rank).encode())
    assert line.recv(10) == b"bye"
say("mine", mine)
"""  # ranks that meet at MASTER_PORT, and say who they are

WAITS = """
import os, pathlib, time
pathlib.Path(os.environ["MARKS"], os.environ["RANK"]).touch()
time.sleep(99)
"""  # ranks that never end by themselves

SAVES_LATE = """
import os, pathlib, signal, sys, time
rank, marks = os.environ["RANK"], pathlib.Path(os.environ["MARKS"])
def leave(*_):
    (marks / f"told-{rank}").touch()
    pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "state").write_text(rank)
    sys.exit(75)
signal.signal(signal.SIGTERM, leave)
(marks / rank).touch()
time.sleep(99)
"""  # ranks that know nothing of each other, and save when they are told to go


EXTRA = ("tensorflow", "jax")  # gangs-test, of pyproject.toml


def needs(name: str) -> None:
    """Where the whole extra is absent, that was meant so; where only a part of it is, something is wrong."""
    if find_spec(name):
        return
    if any(find_spec(one) for one in EXTRA):
        servers.missing(f"{name} is not installed, and others of the extra gangs-test are")
    pytest.skip("the extra gangs-test (1.3 GB) is not installed: make gangs")


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


TRAINS = """
import hashlib, json, os, signal, time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hostler

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
run = hostler.start(save_every=float(os.environ.get("EVERY", "0.2")))
torch.manual_seed(rank)
layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
# else DDP sums in another order in the first iteration of a process than in later ones
model = DistributedDataParallel(layers, find_unused_parameters=True)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
run.track(model=model, optimizer=optimizer)
data = torch.Generator().manual_seed(7)
x, y = torch.randn(64, 8, generator=data), torch.randn(64, 1, generator=data)
marks, at = Path(os.environ["MARKS"]), json.loads(os.environ.get("KILL", "[-1, -1]"))
marks.mkdir(parents=True, exist_ok=True)
for epoch in run.epochs(3):
    for step in run.steps(8):
        if [rank, run.step] == at and not (marks / "killed").exists():
            (marks / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        chosen = torch.randperm(len(x))[:8]  # of this rank's own generator
        optimizer.zero_grad()
        loss = ((model(x[chosen]) - y[chosen]) ** 2).mean()
        loss.backward()
        optimizer.step()
        run.log({f"loss{rank}": float(loss.detach())})
        (marks / f"step-{rank}-{run.step}").touch()
        time.sleep(float(os.environ.get("NAP", "0")))
flat = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
os.write(1, f"weights {json.dumps([rank, hashlib.sha256(flat).hexdigest()])}\\n".encode())
dist.barrier()
dist.destroy_process_group()
"""  # a training of several ranks with the library; KILL: [rank, step] that dies, once


GANG = """
import hashlib, json, os, random, signal, socket, time

import hostler

try:
    import torch
    import torch.distributed as dist
except ImportError:  # an image with Python alone: the same, by hand
    torch = None

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
run = hostler.start(save_every=float(os.environ.get("EVERY", "0.5")))
killed, dies = os.path.join(os.environ.get("MARKS", ""), "killed"), json.loads(os.environ.get("KILL", "[]"))


class Weights:
    value = [0.0] * 8

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = list(state["value"])


class Line:
    \"\"\"Sums of all ranks, by rank 0.\"\"\"

    def __init__(self):
        where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if torch:
            torch.set_num_threads(1)
            dist.init_process_group("gloo")
        elif rank == 0:
            server = socket.create_server(("", where[1]))
            self.guests = [server.accept()[0].makefile("rw") for _ in range(world - 1)]
        else:
            self.up = self.reach(where).makefile("rw")

    def reach(self, where):
        for _ in range(600):
            try:
                return socket.create_connection(where)
            except OSError:
                time.sleep(0.1)
        raise SystemExit("nobody listens")

    def sum(self, mine):
        if torch:
            told = torch.tensor(mine, dtype=torch.float64)
            dist.all_reduce(told)
            return told.tolist()
        if rank:
            print(json.dumps([rank, mine]), file=self.up, flush=True)
            return json.loads(self.up.readline())
        told = dict([[0, mine], *(json.loads(guest.readline()) for guest in self.guests)])
        total = [sum(told[r][k] for r in sorted(told)) for k in range(len(mine))]
        for guest in self.guests:
            print(json.dumps(total), file=guest, flush=True)
        return total


line, weights = Line(), Weights()
run.track(weights=weights)
for step in run.steps(24):
    if dies == [rank, run.step] and not os.path.exists(killed):
        os.makedirs(os.path.dirname(killed), exist_ok=True)
        open(killed, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    chance = random.Random(f"{rank} {step}")
    mine = [chance.gauss(0, 1) - w for w in weights.value]
    weights.value = [w + 0.1 * g for w, g in zip(weights.value, line.sum(mine))]
    run.log({"loss": sum(w * w for w in weights.value)})
    time.sleep(float(os.environ.get("NAP", "0.2")))
done = hashlib.sha256(json.dumps(weights.value).encode()).hexdigest()
os.write(1, f"weights {json.dumps([rank, done])}\\n".encode())
"""  # ranks that train one model, by gloo where there is torch; every step counts; KILL: as above
GANG_BY_HAND = GANG.replace(
    "    import torch\n", "    raise ImportError\n", 1
)  # twelve processes load no torch


COUNTS = """
import json, os, time
from pathlib import Path

import hostler

run = hostler.start(save_every=0.1)
marks, attempt = Path(os.environ["MARKS"]), os.environ["HOSTLER_ATTEMPT"]


class Sum:
    value = 0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


def together(step):
    (marks / f"{attempt}-{step}-{run.rank}").touch()
    while not all((marks / f"{attempt}-{step}-{rank}").exists() for rank in range(run.ranks)):
        time.sleep(0.002)


total = Sum()
run.track(total=total)
for step in run.steps(int(os.environ.get("STEPS", "40"))):
    together(step)
    total.value += (run.rank + 1) * step
    time.sleep(float(os.environ.get("NAP", "0.01")))
os.write(1, f"total {json.dumps([run.rank, run.ranks, total.value])}\\n".encode())
"""  # ranks with the library and without torch; nobody is more than a step ahead
