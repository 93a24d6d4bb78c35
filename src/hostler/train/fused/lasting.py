"""What a process keeps from one group of trainings to the next, and what it lets go of.

Kept are libraries and, where two groups have the same data, these. Everything else is let go of, so that
the next group finds what it would find in a new process: free memory on the device, no compiled function of
another model. Code of a user's own may keep anything in its modules: a process that has loaded some is used
once.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import torch

import hostler
from hostler.train import custom, parts
from hostler.train.config import Config
from hostler.train.data.split import Data
from hostler.train.fused import alike

MADE = ("synthetic", "sklearn")  # sets that are the same wherever and whenever they are loaded
READ = ("torchvision", "libsvm")  # sets that are files below `data_dir`
MOST = 1000  # files whose times are looked at; of more none is kept
Stamp = tuple[tuple[str, int, int], ...]


class Lasting:
    def __init__(self) -> None:
        self._kept: tuple[tuple[str, str, Stamp], Data] | None = None

    def data(self, config: Config, device: torch.device) -> Data:
        """As `parts.data_of`, from the group before if that had the same."""
        stamp = _stamp(config)
        if stamp is None:
            self._kept = None
            return parts.data_of(config, device)
        key = alike.shape(config), str(device), stamp
        if self._kept is None or self._kept[0] != key:
            self._kept = None  # before others are loaded: both may not fit
            self._kept = key, parts.data_of(config, device)
        return self._kept[1]

    def clear(self) -> bool:
        """A group has left: whether another may come."""
        if not _is_ours() or any(name.startswith(custom.MODULE) for name in sys.modules):
            return False
        if "torch._dynamo" in sys.modules:
            torch.compiler.reset()
        gc.collect()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        return True


def _is_ours() -> bool:
    """Whether this is the trainer as it came, and no copy that somebody has changed."""
    return Path(__file__).is_relative_to(Path(hostler.__file__).parent)


def _stamp(config: Config) -> Stamp | None:
    """The same as long as the data are; None where nobody can tell."""
    if custom.is_place(config.dataset) or config.transform is not None or config.eval_datasets:
        return None
    word = config.dataset.partition("/")[0]
    if word in MADE:
        return ()
    return _files(Path(config.data_dir).expanduser().absolute()) if word in READ else None


def _files(folder: Path) -> Stamp | None:
    found = list[tuple[str, int, int]]()
    for at, _, names in os.walk(folder, followlinks=True):
        for name in names:
            path = os.path.join(at, name)
            try:
                facts = os.stat(path)
            except OSError:
                return None
            found.append((path, facts.st_mtime_ns, facts.st_size))
            if len(found) > MOST:
                return None
    return tuple(sorted(found))
