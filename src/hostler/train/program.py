"""A training as a program: its config from words, and what trains in place of one process.

A worker may give several runs to the process, one group after the other, and `multi_gpu` may start a process
on each device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hostler import env
from hostler.errors import MachineError
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.sdk import shared_process
from hostler.sdk.shared_process import SharedRun
from hostler.train import configfile
from hostler.train.config import Config


def asked(words: Sequence[str], folder: Handoff | None = None) -> Config:
    """The words' config; options of a run that a worker handed over are as it gave them. `folder`: of a run
    that shares this process."""
    if folder is None and (own := env.run_dir()) is not None:
        folder = Handoff(own)
    values = (handoff.read(folder.params) if folder is not None else None) or {}
    return configfile.from_words((*words, *configfile.restated(words, values)))


def elsewhere(words: Sequence[str], own: Callable[[SharedRun], Sequence[str]] | None = None) -> int | None:
    """Exit code of the runs that share this process, or of the processes on all devices that trained in its
    place; None: this process has one training. `own`: a shared run's words, where they are not all of it."""
    try:
        from hostler.train import ranks
        from hostler.train.fused import seated
        from hostler.train.fused.lasting import Lasting
    except ModuleNotFoundError as error:
        raise MachineError(f"the trainer needs {error.name}", hint="pip install 'hostler[train]'") from None
    if shared := shared_process.seats():
        lasting = Lasting()
        while seated.train(
            shared,
            lambda seat: asked(own(seat) if own else seat.words, seat.folder),
            shared_process.limit(),
            lasting.data,
        ):
            if not (lasting.clear() and shared_process.next_group()):
                break
            shared = shared_process.seats()
        return 0
    return ranks.trained(asked(words), asked="multi_gpu" in configfile.names(words))
