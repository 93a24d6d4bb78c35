"""Starts the dashboard: a port, a guard, and the server until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import itertools
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hostler import env
from hostler.analysis.board import app
from hostler.analysis.board import token as tokens
from hostler.analysis.board.deeds import Wake
from hostler.analysis.board.guard import Guard
from hostler.analysis.board.watcher import Watcher
from hostler.errors import MachineError
from hostler.frozen import dataclass
from hostler.store import Store

PORT = 8642


@dataclass(frozen=True)
class ListenAddress:
    """The address to listen on. Port 0: the usual one, or any if that is taken."""

    host: str = "127.0.0.1"
    port: int = 0
    token_file: Path | None = None  # None: a new token
    names: tuple[str, ...] = ()


def serve(
    store: Store,
    watcher: Watcher,
    place: ListenAddress,
    say: Callable[[str, Path], None],
    wake: Wake | None = None,
) -> None:
    """Until the process is told to end. Once it answers, `say` gets the address, and a page of this user that
    leads there."""
    token = tokens.from_file(place.token_file) if place.token_file else tokens.new()
    listening = _listen(place)
    port = int(listening.getsockname()[1])
    guard = Guard(place.host, port, token, place.names)
    config = uvicorn.Config(
        app.make(store, watcher, guard, wake),
        http=BoundedConnection,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    url = address(place.host, port, token)
    try:
        with ExitStack() as files:
            name = f"{socket.gethostname()}-{port}"
            page = files.enter_context(tokens.kept(env.state_dir() / "ui", name, token, url))
            _BoardServer(config, watcher, lambda: say(url, page), files.close).run(sockets=[listening])
    except KeyboardInterrupt:  # how a person ends it
        return
    finally:
        listening.close()


class _BoardServer(uvicorn.Server):
    """Says when it answers. Told to end, it also ends open streams, and removes the token: SIGTERM leaves no
    time later."""

    def __init__(
        self, config: uvicorn.Config, watcher: Watcher, say: Callable[[], None], forget: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._watcher, self._say, self._forget = watcher, say, forget

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._watcher.opened()
        self._say()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._forget()
        self._watcher.close()
        super().handle_exit(sig, frame)


def address(host: str, port: int, token: str) -> str:
    """The address to open in a browser; its fragment, which stays in the browser, holds the token."""
    shown = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    name = f"[{shown}]" if ":" in shown else shown
    return f"http://{name}:{port}/#token={token}"


def _listen(place: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    for port in [place.port] if place.port else [PORT, 0]:
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((place.host, port))
            listening.listen(128)  # whoever opens the address at once waits, and is not turned away
        except OSError as error:
            listening.close()
            trouble = error
            continue
        return listening
    elsewhere = isinstance(trouble, socket.gaierror) or trouble.errno == errno.EADDRNOTAVAIL
    raise MachineError(
        f"cannot listen on {place.host} port {place.port or PORT}: {trouble.strerror}",
        hint="give --host an address of this machine"
        if elsewhere
        else "give another --port; --port 0 takes any free one",
    )


# Limits on the dashboard's connections: their number, and the time each may waste.
#
# uvicorn waits without end for the rest of a request and for a client that does not read. Here a request has
# `REQUEST` seconds to arrive whole, and an answer that nobody reads is dropped after `STALLED`. Where
# `CONNECTIONS` are open, the oldest one without a request makes room.


CONNECTIONS = 256
REQUEST = 20.0  # seconds
STALLED = 60.0  # seconds
_NUMBERS = itertools.count()  # of connections as they come: several may come at one time
_WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)  # states of a client that has sent its request


class BoundedConnection(H11Protocol):
    _late: asyncio.TimerHandle | None = None  # fires when the request has not arrived
    _full: asyncio.TimerHandle | None = None  # fires when the answer has not been read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.number = next(_NUMBERS)
        self._late = self.loop.call_later(REQUEST, transport.abort)
        if len(self.connections) > CONNECTIONS:
            others = [one for one in self.connections if isinstance(one, BoundedConnection) and one.is_idle]
            min(others, key=lambda one: one.number).transport.abort()

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
