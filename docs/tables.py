"""Parts of the docs that are made from code: what each backend can do, errors, settings, files, an example.

python docs/tables.py     writes them anew between `<!-- made: NAME -->` and `<!-- /made -->`

`messages` and `packages` are too long for files that people keep by hand: the site alone has them
(docs/building.py).
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from hostler import errors, settings
from hostler.backends.base import Capabilities
from hostler.backends.registry import BACKENDS, backend, backend_of
from hostler.settings import Sizes, Timing
from hostler.simulate import request_rates
from hostler.spec.project import Fleet
from hostler.spec.units import show_duration

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src" / "hostler"
SETTINGS = SOURCE / "settings.py"
EXAMPLE = DOCS.parent / "tests" / "examples" / "folder_queue"
BLOCK = re.compile(r"(<!-- made: ([\w -]+) -->\n).*?(<!-- /made -->)", re.DOTALL)
SAID = {
    "restarts": "a lost worker comes back",
    "gangs": "all nodes of a run come together",
    "billed": "its machines cost money by the hour",
    "shares_disk": "its workers see folders of the machine that submits",
    "makes_machines": "its machines come with a launch, and go with it",
    "shared": "others wait for its machines: a worker with nothing to do leaves",
    "keeps_secrets": "new machines can be told secrets that others cannot read",
    "tells": "`hostler status` says what workers wait for",
    "scripts": "`hostler sweep -s` runs a batch script of your own there",
    "by_ssh": "`hostler ssh` gets onto its machines by ssh",
    "grows": "its workers may ask for others, where a sweep is late",
    "lasts": "a launch that nobody gave a deadline goes after",
    "longest": "no machine of it lasts longer than",
}


def known() -> dict[str, Capabilities]:
    """The capabilities of each backend, and of Slurm through a login node."""
    found = {name: backend(name).capabilities for name in BACKENDS}
    login = Fleet(name="x", backend="slurm", options={"login": "me@login"})
    return found | {"slurm with login": backend_of(login).capabilities}


def capabilities(*chosen: str) -> str:
    """A row for each capability, a column for each backend that is named: all if none is."""
    columns = {name: what for name, what in known().items() if not chosen or name.split()[0] in chosen}
    head = [f"| | {' | '.join(f'`{name}`' for name in columns)} |", "|---|" + "---|" * len(columns)]
    rows = [
        f"| {SAID[one.name]} | {' | '.join(_shown(getattr(what, one.name)) for what in columns.values())} |"
        for one in fields(Capabilities)
    ]
    return "\n".join([*head, *rows])


def _shown(value: bool | float | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else show_duration(value)


def classes() -> str:
    """A row for each class of error: its exit code, its meaning."""
    rows = [f"| `{kind.__name__}` | {kind.exit_code} | {_first_line(kind)} |" for kind in _kinds()]
    return "\n".join(["| class | exit code | |", "|---|---|---|", *rows])


def _kinds() -> list[type[errors.HostlerError]]:
    found = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    return sorted(found, key=lambda kind: inspect.getsourcelines(kind)[1])


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def messages() -> str:
    """Every message that the code can say, by class, with its hint; what it fills in is an ellipsis."""
    said: dict[str, set[tuple[str, str]]] = {kind.__name__: set() for kind in _kinds()}
    for path in sorted(SOURCE.rglob("*.py")):
        for kind, message, hint in _raised(ast.parse(path.read_text()), said):
            said[kind].add((message, hint))
    parts = [
        f"### {kind}\n\n| it says | what to do |\n|---|---|\n"
        + "\n".join(_row(*one) for one in sorted(found))
        for kind, found in said.items()
        if found
    ]
    return "\n\n".join(parts)


def _raised(tree: ast.Module, kinds: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in kinds:
            continue
        named = {word.arg: word.value for word in node.keywords}
        given = [*node.args, *[named[name] for name in ("message",) if name in named]]
        hint = named.get("hint", node.args[1] if len(node.args) > 1 else None)
        message = _text(given[0]) if given else ""
        if message.strip("… "):
            yield node.func.id, message, _text(hint).strip("… ") if hint else ""


def _text(node: ast.expr) -> str:
    """A text of the code, with an ellipsis for whatever is not known before it runs."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return re.sub("…+", "…", "".join(_text(part) for part in node.values))
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…"


def _row(message: str, hint: str) -> str:
    return f"| {_escaped(message)} | {_escaped(hint)} |"


def _escaped(text: str) -> str:
    return re.sub(r"[^\w\s.,:;…-]", lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def example(name: str) -> str:
    """A file of the backend that the tests carry runs out with."""
    return f"```python\n{(EXAMPLE / f'{name}.py').read_text()}```"


def times_and_sizes() -> str:
    """A row for each setting: its default, on one machine, on a network folder, and its comment."""
    head = "| name | default | one machine | NFS | |\n|---|---|---|---|---|"
    return "\n".join([head, *(_setting(one) for kind in (Timing, Sizes) for one in fields(kind))])


def _setting(one: Field[Any]) -> str:
    numbers = [settings.ONE_MACHINE, settings.NETWORK_FOLDER]
    shown = [f"{given[one.name]:g}" if one.name in given else "" for given in numbers]
    meaning = re.search(rf"^    {one.name}: float = [^#\n]*(?:# (.*))?$", SETTINGS.read_text(), re.MULTILINE)
    said = (meaning[1] or "") if meaning else ""
    return f"| `{one.name}` | {one.default:g} | {' | '.join(shown)} | {said} |"


def packages() -> str:
    """A section for each package: the files in it, as its `__init__.py` tells them."""
    parts = []
    for path in sorted(SOURCE.rglob("__init__.py")):
        told = ast.get_docstring(ast.parse(path.read_text())) or ""
        parts.append(f"### {path.parent.relative_to(SOURCE.parent).as_posix()}\n\n```text\n{told}\n```")
    return "\n\n".join(parts)


MAKERS: dict[str, Callable[..., str]] = {
    "capabilities": capabilities,
    "errors": classes,
    "example": example,
    "settings": times_and_sizes,
    "scale": request_rates.table,
    "last-looks": request_rates.last_look_table,
}


def filled(page: str) -> str:
    """A page with its made parts as the code says them now."""

    def made(found: re.Match[str]) -> str:
        name, *words = found[2].split()
        return f"{found[1]}{MAKERS[name](*words)}\n{found[3]}"

    return BLOCK.sub(made, page)


def main() -> int:
    for path in sorted(DOCS.glob("*.md")):
        before = path.read_text()
        after = filled(before)
        if after != before:
            path.write_text(after)
            print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
