"""The statements that a script runs, without running it: its own, and those of modules of the project.

Of an imported module count its top level and what the script uses of it, as far as two modules away; a
parser that stands under `if __name__ == "__main__"` of another module is not the script's.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.parsers.values import constants

AWAY = 2  # modules between the script and a declaration
MOST = 50  # modules that are read
LARGEST = 2_000_000  # bytes of one


@dataclass(frozen=True)
class ScriptSource:
    """A module's statements that count."""

    shown: str  # path for messages
    folder: Path
    tree: ast.Module
    statements: tuple[ast.stmt, ...]
    names: Mapping[str, Any]  # bound to constants

    def nodes(self) -> Iterator[ast.AST]:
        for statement in self.statements:
            yield from ast.walk(statement)


def sources(script: Path, roots: Iterable[Path], shown: str) -> tuple[ScriptSource, ...]:
    """The script's source and those it imports from the `roots`; () if it is not Python that can be read."""
    tree = _parsed(script)
    if tree is None:
        return ()
    first = ScriptSource(shown, script.parent, tree, tuple(tree.body), constants(tree))
    read = {os.path.realpath(script): first}
    _follow(first, tuple(roots), read, AWAY)
    return tuple(read.values())


def functions(found: Iterable[ScriptSource]) -> dict[str, ast.AST]:
    """Functions by name, where all that bear it are one."""
    by_name: dict[str, list[ast.AST]] = {}
    for source in found:
        for node in source.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                by_name.setdefault(node.name, []).append(node)
    return {name: nodes[0] for name, nodes in by_name.items() if len(nodes) == 1}


def classes(found: Iterable[ScriptSource]) -> dict[str, ast.ClassDef]:
    return {n.name: n for source in found for n in source.nodes() if isinstance(n, ast.ClassDef)}


def imported(found: Iterable[ScriptSource]) -> set[str]:
    """First names of all that is imported: argparse, click, absl …"""
    names: set[str] = set()
    for source in found:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names


def _follow(source: ScriptSource, roots: tuple[Path, ...], read: dict[str, ScriptSource], away: int) -> None:
    if not away:
        return
    for path, wanted in _imports(source, roots):
        real = os.path.realpath(path)
        if real in read or len(read) >= MOST:
            continue
        tree = _parsed(path)
        if tree is None:
            continue
        shown = _shown(path, roots)
        module = ScriptSource(shown, path.parent, tree, _used(tree, wanted), constants(tree))
        read[real] = module
        _follow(module, roots, read, away - 1)


def _imports(source: ScriptSource, roots: tuple[Path, ...]) -> Iterator[tuple[Path, set[str] | None]]:
    """(file, names used of it); None: all of them."""
    nodes = [*ast.walk(source.tree)]
    seen = list(source.nodes())
    used = {node.id for node in seen if isinstance(node, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                path = _module(alias.name, roots)
                bound = alias.asname or alias.name
                if path:
                    yield path, _attributes(seen, bound)
        elif isinstance(node, ast.ImportFrom):
            places = (_above(source.folder, node.level),) if node.level else roots
            yield from _from(node, places, seen, used)


def _from(
    node: ast.ImportFrom, places: tuple[Path, ...], seen: list[ast.AST], used: set[str]
) -> Iterator[tuple[Path, set[str] | None]]:
    base = f"{node.module}." if node.module else ""
    path = _module(node.module, places) if node.module else None
    names = {alias.name for alias in node.names if (alias.asname or alias.name) in used}
    if path and names:
        yield path, names
    elif path and any(alias.name == "*" for alias in node.names):
        yield path, None
    for alias in node.names:
        inner = _module(base + alias.name, places)
        if inner and inner != path:
            yield inner, _attributes(seen, alias.asname or alias.name)


def _attributes(nodes: Iterable[ast.AST], bound: str) -> set[str]:
    return {n.attr for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n.value) == bound}


def _module(name: str, places: Iterable[Path]) -> Path | None:
    for place in places:
        path = place.joinpath(*name.split("."))
        for file in (path.with_name(path.name + ".py"), path / "__init__.py"):
            if os.path.isfile(file):  # no error where a name is too long
                return file
    return None


def _above(folder: Path, level: int) -> Path:
    return folder if level <= 1 else folder.parents[min(level - 2, len(folder.parents) - 1)]


def _used(tree: ast.Module, wanted: set[str] | None) -> tuple[ast.stmt, ...]:
    """Statements of an imported module: its top level, and definitions that are wanted or that those need."""
    defined = {
        n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    top = [node for node in tree.body if node not in defined.values() and not _is_main(node)]
    left = set(defined) if wanted is None else wanted & set(defined)
    for node in top:
        left |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & set(defined)
    taken: set[str] = set()
    while left:
        name = left.pop()
        taken.add(name)
        left |= {n.id for n in ast.walk(defined[name]) if isinstance(n, ast.Name)} & set(defined) - taken
    return (*top, *(node for name, node in defined.items() if name in taken))


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in {
        n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)
    }


def _parsed(path: Path) -> ast.Module | None:
    try:
        if path.stat().st_size > LARGEST:
            return None
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _shown(path: Path, roots: Iterable[Path]) -> str:
    for root in roots:
        if path.is_relative_to(root):
            return str(path.relative_to(root))
    return path.name
