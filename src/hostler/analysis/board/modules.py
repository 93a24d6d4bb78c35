"""Modules of the page joined into one script, each as a function that gives what the module exports.

Nothing else is done to them: a line `import { a, b as c } from "./x.js";` becomes a call, the word `export`
is left out, and `import("./x.js")` waits for the second script. A line in another form is refused, so that
the page's modules stay in this one. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

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
