"""One allocation of several nodes: a worker on each of them, started by srun and kept until all have left.

Signals go through srun to all of them. Only when the last one has left does the job go back into the queue:
until then one of them may still be saving.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from hostler.worker.parent import FINAL, FORWARDED


def srun(worker: Sequence[str], nodes: int, variables: Mapping[str, str]) -> list[str]:
    """srun's words for one worker on each node; one that ends leaves the others alone. Pure."""
    words = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", "--kill-on-bad-exit=0"]
    words += ["--wait=0", "--label"]
    cpus = variables.get("SLURM_CPUS_PER_TASK")  # srun does not take it from the job
    return [*words, *([f"--cpus-per-task={cpus}"] if cpus else []), *worker]


def keep(
    command: Sequence[str],
    *,
    notice_in: float | None,
    requeue: Callable[[], bool] | None,
    say: Callable[[str], None],
) -> int:
    """Run it to its end, passing signals on; its exit code. Call it in the main thread."""
    child = subprocess.Popen(command)
    noticed, ending = threading.Event(), threading.Event()

    def forward(number: int, frame: FrameType | None) -> None:
        (noticed if number == signal.SIGUSR1 else ending).set()
        child.send_signal(number)

    for number in FORWARDED:
        signal.signal(number, forward)
    timer = threading.Timer(max(notice_in or 0.0, 0.0), lambda: forward(signal.SIGUSR1, None))
    timer.daemon = True
    if notice_in is not None:
        timer.start()
    code = child.wait()
    timer.cancel()
    if requeue and noticed.is_set() and not ending.is_set() and code not in FINAL:
        say("its time is over; " + ("back into the queue" if requeue() else "it could not be queued again"))
    return code if code >= 0 else 128 - code
