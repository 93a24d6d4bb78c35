"""The page's own files, read once and answered from memory: a browser asks for all of them at once, while the
store is being read."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFiles:
    def __init__(self) -> None:
        found = {one.name: one.read_bytes() for one in (files(__package__) / "page").iterdir()}
        self._files = {name: data for name, data in found.items() if _kind(name)}

    async def index(self, request: Request) -> Response:
        return self._answer("index.html")

    async def one(self, request: Request) -> Response:
        return self._answer(str(request.path_params["name"]))

    def _answer(self, name: str) -> Response:
        if name not in self._files:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(self._files[name], media_type=_kind(name))


def _kind(name: str) -> str:
    return next((kind for end, kind in KINDS.items() if name.endswith(end)), "")
