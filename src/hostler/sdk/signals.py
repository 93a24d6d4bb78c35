"""Signals as stop requests: a run inside its loops saves and leaves; elsewhere they do what they always do.

Only where the script has no handler of its own. The second one of a kind is the signal itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

REASONS = {signal.SIGTERM: "preempted", signal.SIGINT: "interrupt"}
_USUAL: dict[signal.Signals, Any] = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}


class Signals:
    """`listens`: whether the script would notice a stop request now."""

    def __init__(self, say: Callable[[str], None], *, wanted: tuple[signal.Signals, ...]) -> None:
        self._say, self._wanted = say, wanted
        self._installed: list[signal.Signals] = []
        self.listens: Callable[[], bool] = lambda: False
        self.reason: str | None = None

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self._wanted:
            if signal.getsignal(number) == _USUAL[number]:
                signal.signal(number, self._handle)
                self._installed.append(number)

    def uninstall(self) -> None:
        for number in self._installed:
            if threading.current_thread() is threading.main_thread() and _is(number, self._handle):
                signal.signal(number, _USUAL[number])
        self._installed = []

    def _handle(self, number: int, frame: FrameType | None) -> None:
        which = signal.Signals(number)
        if self.reason is None and self.listens():
            self.reason = REASONS[which]
            self._say(f"{which.name}: will save and leave at the next step; repeat it to leave at once")
            return
        usual: Any = _USUAL[which]
        signal.signal(which, usual)
        if callable(usual):
            usual(number, frame)
        else:
            signal.raise_signal(which)


def _is(number: signal.Signals, handler: Any) -> bool:
    return bool(signal.getsignal(number) == handler)
