"""The page's own files, read once and answered from memory: each as it is, and a first view in one answer.

A browser that asks for twenty files, one after the other has named it, waits longer for them than for runs.
So `index.html` goes out with what a first view needs inside of it: styles, pictures, the first question, and
the modules that `main.js` imports. What these load later is a second answer, `later.js`. The page's policy
names the sums of these very scripts and styles: no others run. The files stay what they are, also under their
own addresses.

A module becomes a function that gives what the module exports. Nothing else is done to it: a line
`import { a, b as c } from "./x.js";` becomes a call, the word `export` is left out, and `import("./x.js")`
waits for the second script. A line in another form is refused, so that the page's modules stay in this one.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hostler.analysis.board.guard import policy

if TYPE_CHECKING:
    from importlib.abc import Traversable

_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
_LATER = re.compile(r'\bimport\("([^"]+)"\)')
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
LOADER = """
// A module is made when it is first asked for; those of the second script are fetched when one of them is.
const made = {};
const from = (name) => (made[name] ??= makers[name](from, load));
const load = async (name) => {
  if (!(name in makers)) Object.assign(makers, (await import("/static/later.js")).makers);
  return from(name);
};
"""

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
MAIN, LATER = "main.js", "later.js"
_STYLE = re.compile(r'<link rel="stylesheet" href="/static/([\w.]+)">\n?')
_SCRIPT = re.compile(r'<script src="/static/([\w.]+)" async></script>')
_MODULE = '<script type="module" src="/static/main.js"></script>'
_PICTURE = re.compile(r'"/static/([\w.]+\.svg)"')


class PageFiles:
    def __init__(self, notice: Callable[[], None]) -> None:
        """`notice` hears of each file that is asked for: a page is being opened."""
        self._notice = notice
        folder = files(__package__) / "page"
        self._files = {**_files_of(folder), **_files_of(folder / "plots", "plots/")}
        first, later = joined(self._texts(".js"), MAIN)
        self._files[LATER] = later.encode()
        self._index, self._headers = self._whole(first)

    async def index(self, request: Request) -> Response:
        self._notice()
        return Response(self._index, media_type=KINDS[".html"], headers=self._headers)

    async def one(self, request: Request) -> Response:
        return self._answer(str(request.path_params["name"]))

    async def plot(self, request: Request) -> Response:
        return self._answer(f"plots/{request.path_params['name']}")

    def _answer(self, name: str) -> Response:
        self._notice()
        if name not in self._files:
            return PlainTextResponse("This file does not exist.\n", 404)
        return Response(self._files[name], media_type=_kind(name))

    def _texts(self, end: str) -> dict[str, str]:
        return {name: data.decode() for name, data in self._files.items() if name.endswith(end)}

    def _whole(self, first: str) -> tuple[bytes, dict[str, str]]:
        """`index.html` with what it names inside of it, and its policy."""
        page, sheets = self._files["index.html"].decode(), self._texts(".css")
        style = "".join(sheets[name] for name in _STYLE.findall(page))
        early = "".join(self._files[name].decode() for name in _SCRIPT.findall(page))
        page = _STYLE.sub("", _STYLE.sub(lambda _: f"<style>{style}</style>\n", page, count=1))
        page = _SCRIPT.sub(lambda _: f"<script>{early}</script>", page)
        page = page.replace(_MODULE, f'<script type="module">{first}</script>')
        page = _PICTURE.sub(lambda found: f'"{self._picture(found[1])}"', page)
        return page.encode(), {"Content-Security-Policy": policy([_sum(early), _sum(first)], [_sum(style)])}

    def _picture(self, name: str) -> str:
        return f"data:{_kind(name)};base64,{base64.b64encode(self._files[name]).decode()}"


def _sum(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _files_of(folder: Traversable, before: str = "") -> dict[str, bytes]:
    return {before + path.name: path.read_bytes() for path in folder.iterdir() if _kind(path.name)}


def _kind(name: str) -> str:
    return next((kind for end, kind in KINDS.items() if name.endswith(end)), "")


def joined(sources: Mapping[str, str], main: str) -> tuple[str, str]:
    """(the script that runs `main` and what it imports, the script of all that is loaded later)."""
    first = in_order(sources, main)
    rest = [name for name in sources if name not in first and _EXPORT.search(sources[name])]
    start = f"{_makers(sources, first, main)}{LOADER}from({main!r});\n"
    return start, f"export {_makers(sources, rest)}"


def in_order(sources: Mapping[str, str], name: str, above: tuple[str, ...] = ()) -> list[str]:
    """A module after all that it imports."""
    if name in above:
        raise ValueError(f"these modules import each other: {', '.join((*above, name))}")
    found: dict[str, None] = {}
    for _, path in _IMPORT.findall(sources[name]):
        found |= dict.fromkeys(in_order(sources, _resolved(name, path), (*above, name)))
    return [*found, name]


def _makers(sources: Mapping[str, str], names: list[str], main: str = "") -> str:
    parts = (f"{name!r}: ({_maker(name, sources[name], name == main)}),\n" for name in names)
    return f"const makers = {{\n{''.join(parts)}}};\n"


def _maker(name: str, source: str, awaits: bool) -> str:
    exported = [found[2] for found in _EXPORT.finditer(source)]
    body = _IMPORT.sub(lambda f: f"const {{ {_renamed(f[1])} }} = from({_resolved(name, f[2])!r});", source)
    body = _EXPORT.sub(r"\1", body)
    body = _LATER.sub(lambda found: f"load({_resolved(name, found[1])!r})", body)
    if match := _OTHER.search(body):
        raise ValueError(f'{name}: {match[0]!r} is not the form of the others: import {{ a }} from "./x.js";')
    if "</script" in body or "<!--" in body:
        raise ValueError(f"{name} holds a mark that would end or hide a script in a page")
    return f"{'async ' if awaits else ''}(from, load) => {{\n{body}return {{ {', '.join(exported)} }};\n}}"


def _renamed(names: str) -> str:
    """Names of an import as those of a pattern: `a as b` is `a: b`."""
    return names.replace(" as ", ": ")


def _resolved(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
