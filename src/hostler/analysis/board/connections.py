"""Limits on the dashboard's connections: their number, and the time each may waste.

uvicorn waits without end for the rest of a request and for a client that does not read. Here a request has
`REQUEST` seconds to arrive whole, and an answer that nobody reads is dropped after `STALLED`. Where
`CONNECTIONS` are open, the oldest one without a request makes room.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 256
REQUEST = 20.0  # seconds
STALLED = 60.0  # seconds
_WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)  # states of a client that has sent its request


class BoundedConnection(H11Protocol):
    _late: asyncio.TimerHandle | None = None  # fires when the request has not arrived
    _full: asyncio.TimerHandle | None = None  # fires when the answer has not been read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.opened = self.loop.time()
        self._late = self.loop.call_later(REQUEST, transport.abort)
        if len(self.connections) > CONNECTIONS:
            others = [one for one in self.connections if isinstance(one, BoundedConnection) and one.is_idle]
            min(others, key=lambda one: one.opened).transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state in _WHOLE:
            _cancel(self._late)
            self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full = self.loop.call_later(STALLED, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._full)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        _cancel(self._late)
        _cancel(self._full)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
