"""The guard at the door of the web application: every request passes here first."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hostler.analysis.board.guard import COOKIE, HEADERS, Guard

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
        await (refusal or self._app)(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._guard.knows_host(headers.get("host", "")):
            return PlainTextResponse("This dashboard is not known by that name.\n", 421)
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if asked and self._guard.token and scope["path"] == "/" and self._guard.admits(asked):
            return self._welcome(asked)
        if not self._guard.admits(_token(headers)):
            return PlainTextResponse("Open the address that hostler ui printed: it carries a token.\n", 401)
        if scope["method"] not in SAFE and not self._guard.may_act(headers):
            return PlainTextResponse("That did not come from this dashboard's own page.\n", 403)
        return None

    def _welcome(self, token: str) -> Response:
        """The token goes from the address into a cookie, out of sight and out of the history."""
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
        return answer


def _token(headers: Headers) -> str:
    bearer = headers.get("authorization", "")
    if bearer.lower().startswith("bearer "):
        return bearer[7:].strip()
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return cookie.value if cookie else ""
