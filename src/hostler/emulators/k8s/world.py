"""Everything the stand-in holds beside the objects; one lock for all of it, that of the storage."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hostler.emulators.k8s.node.network import Network
from hostler.emulators.k8s.node.sandbox import Sandbox
from hostler.emulators.k8s.pace import Pace
from hostler.emulators.k8s.storage import Obj, Storage

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True)
class Image:
    """Content of an image beside the machine's own files."""

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Memory:
    """The Job controller's memory of a Job, by index; -1 is the whole Job's."""

    failures: dict[int, int] = field(default_factory=dict)
    ignored: dict[int, int] = field(default_factory=dict)
    failed_at: dict[int, float] = field(default_factory=dict)
    began: float | None = None  # since when it is active
    ended: float | None = None
    uncreatable: float = 0.0  # the last time that a pod could not be created


@dataclass
class World:
    root: Path
    pace: Pace
    network: Network
    storage: Storage = field(default_factory=Storage)
    clock: Callable[[], float] = time.time
    chance: random.Random = field(default_factory=random.Random)
    sandboxes: dict[str, Sandbox] = field(default_factory=dict)  # by the pod's uid
    memories: dict[str, Memory] = field(default_factory=dict)  # by the Job's uid
    images: dict[str, Image] = field(default_factory=dict)
    unpullable: dict[str, str] = field(default_factory=dict)  # images -> what their registry says
    silent: dict[str, float] = field(default_factory=dict)  # node -> when it was lost
    leaving: set[str] = field(default_factory=set)  # nodes that are shutting down
    logs: threading.Condition = field(default_factory=threading.Condition)
    issue: Callable[[str], str] = lambda user: ""  # makes a token of a user
    server: tuple[str, int] = ("", 0)  # where pods reach the API
    authority: str = ""  # the certificate that they trust it by
    poked: bool = False
    closed: bool = False

    @property
    def lock(self) -> threading.RLock:
        return self.storage.lock

    def poke(self) -> None:
        """The controllers look again, though no object has changed."""
        with self.storage.changed:
            self.poked = True
            self.storage.changed.notify_all()

    def new_uid(self) -> str:
        return str(uuid.uuid4())

    def suffix(self) -> str:
        return "".join(self.chance.choice(_LETTERS) for _ in range(5))

    def sandbox(self, pod: Obj) -> Sandbox | None:
        return self.sandboxes.get(pod["metadata"]["uid"])
