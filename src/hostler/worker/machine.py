"""Objects that every execution on this worker shares: store and cache, clocks, starting and tidying."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from hostler import settings
from hostler.frozen import dataclass
from hostler.records.defaults import Ledger
from hostler.records.interest import Interest
from hostler.settings import Sizes, Timing
from hostler.store import Store
from hostler.worker.archivist import Archivist
from hostler.worker.compactor import Compactor
from hostler.worker.prepare.prepare import Preparations
from hostler.worker.process.process import Process
from hostler.worker.process.warm import Warmth
from hostler.worker.run.folder_remover import FolderRemover
from hostler.worker.run.reused_folders import ReusedFolders
from hostler.worker.run.surroundings import Surroundings
from hostler.worker.shared.gate import Gate


@dataclass(frozen=True)
class Machine:
    store: Store
    cache: Path
    session: str
    timing: Timing
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    say: Callable[[str], None] = print
    start: Callable[..., Process] = Process.start
    price: float | None = None  # of this worker, an hour, where it is known
    warm: Warmth | None = None  # None: every run is started afresh
    preparations: Preparations = field(default_factory=Preparations)
    surroundings: Surroundings = field(default_factory=Surroundings)
    remover: FolderRemover = field(default_factory=FolderRemover)
    reused: ReusedFolders = field(default_factory=ReusedFolders)
    gate: Gate = field(default_factory=Gate)  # of runs that share a process
    compactor: Compactor = field(default_factory=Compactor)
    archivist: Archivist = field(default_factory=Archivist)
    ledger: Ledger = field(default_factory=Ledger)
    interest: Interest = field(default_factory=Interest)
    sizes: Sizes = field(default_factory=settings.sizes)
