"""Faults of requests: the next of a kind, all of them, or a seeded share of everything.

A fault says whether the request takes effect (`done`) and what the client hears of it. Faults that were
asked for by name come before the share; without any, requests pass.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from hostler.emulators.gcs.message import Answer, Refusal
from hostler.emulators.gcs.route import Kind, Route

_SPARED = (Kind.TOKEN, Kind.BUCKET)  # by a share: it is for the traffic, not for making the scene


@dataclass(frozen=True)
class Fault:
    done: bool = False  # the request takes effect
    status: int = 0  # said instead of the true answer
    retry_after: float | None = None
    reset: bool = False  # the connection is reset instead of an answer
    cut: bool = False  # and already in the middle of the request's body
    halved: bool = False  # the true answer, but its body ends half-way
    delay: float = 0.0  # seconds before the answer

    def answer(self) -> Refusal:
        reason, code = _SAID.get(self.status, ("backendError", "ServiceUnavailable"))
        return Refusal(self.status, reason, code, "said by a fault of the emulator")

    def mark(self, answer: Answer) -> Answer:
        wait = {} if self.retry_after is None else {"Retry-After": f"{self.retry_after:g}"}
        return Answer(answer.status, answer.body, {**answer.headers, **wait})


_SAID = {
    401: ("authError", "AuthenticationRequired"),
    403: ("forbidden", "AccessDenied"),
    404: ("notFound", "NoSuchBucket"),
    429: ("rateLimitExceeded", "SlowDown"),
}

LOST = Fault(done=True, reset=True)
DROPPED = Fault(reset=True)
EXPIRED = Fault(status=401)
HALVED = Fault(done=True, halved=True)


def busy(status: int = 503, *, retry_after: float | None = None) -> Fault:
    """Refused without effect: 429, 503, …"""
    return Fault(status=status, retry_after=retry_after)


def failed(status: int = 503) -> Fault:
    """Answered like a failure, though it took effect."""
    return Fault(done=True, status=status)


def slow(seconds: float) -> Fault:
    """Takes effect at once; the answer comes late."""
    return Fault(done=True, delay=seconds)


def cut() -> Fault:
    """The connection is reset half-way through the request's body."""
    return Fault(reset=True, cut=True)


ANY = (busy(503), busy(429, retry_after=0), busy(500), LOST, DROPPED, failed(503))


@dataclass
class _Order:
    fault: Fault
    kind: Kind | None
    key: str
    left: int | None

    def fits(self, at: Route) -> bool:
        return self.left != 0 and self.kind in (None, at.kind) and at.key.startswith(self.key)


class Faults:
    """Thread-safe. `met` counts the requests that met a fault."""

    def __init__(self) -> None:
        self.met = 0
        self._lock = threading.Lock()
        self._orders: list[_Order] = []
        self._share = 0.0
        self._among: Sequence[Fault] = ANY
        self._chance = random.Random(0)

    def next(self, fault: Fault, kind: Kind | None = None, *, key: str = "", times: int = 1) -> None:
        """The next `times` requests of this kind for keys that start with `key`."""
        with self._lock:
            self._orders.append(_Order(fault, kind, key, times))

    def always(self, fault: Fault, kind: Kind | None = None, *, key: str = "") -> None:
        """Every such request, until `clear`."""
        with self._lock:
            self._orders.append(_Order(fault, kind, key, None))

    def rate(self, share: float, *, seed: int = 0, among: Sequence[Fault] = ANY) -> None:
        """This share of all requests meets one of these faults, by chance from the seed."""
        with self._lock:
            self._share, self._among, self._chance = share, among, random.Random(seed)

    def clear(self) -> None:
        with self._lock:
            self._orders.clear()
            self._share = 0.0

    def choose(self, at: Route) -> Fault | None:
        """The fault that this request meets; asked once for each."""
        with self._lock:
            fault = self._ordered(at) or self._by_chance(at)
            self.met += fault is not None
            return fault

    def _ordered(self, at: Route) -> Fault | None:
        for order in self._orders:
            if order.fits(at):
                order.left = None if order.left is None else order.left - 1
                return order.fault
        return None

    def _by_chance(self, at: Route) -> Fault | None:
        if at.kind in _SPARED or self._chance.random() >= self._share:
            return None
        return self._chance.choice(self._among)
