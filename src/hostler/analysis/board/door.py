"""The gate of the web application: every request passes here first."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hostler.analysis.board.guard import BODY, HEADERS, Guard, is_too_long

SAFE = ("GET", "HEAD")


class Door:
    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, _Body(receive).receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path, reads = Headers(scope=scope), scope["path"], scope["method"] in SAFE
        if not self._guard.knows_host(headers.get("host", "")):
            return PlainTextResponse(
                "This dashboard has another host name: use the address that hostler ui printed.\n",
                421,
            )
        if self._guard.is_foreign(headers, path) or not (reads or self._guard.may_act(headers)):
            return PlainTextResponse("The request did not come from this dashboard's own page.\n", 403)
        if not (path == "/" or path.startswith("/static/")) and not self._guard.admits(headers):
            return PlainTextResponse("Open the link that hostler ui printed, or paste the token.\n", 401)
        if is_too_long(scope["query_string"]):
            return PlainTextResponse("The query is too long: ask for fewer runs.\n", 414)
        return None


class _Body:
    """A request's body, as long as it is not too large."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size = receive, 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > BODY:
            raise HTTPException(413, "The request is too large.")
        return message
