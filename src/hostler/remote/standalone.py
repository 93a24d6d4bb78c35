"""A program of hostler as one text that any Python runs, with nothing of hostler on the machine.

Definitions that it imports from hostler by name, and all that these use in turn, stand before its own. They
share one namespace there, so a name that would get two meanings is refused.
"""

from __future__ import annotations

import ast
import threading
from functools import lru_cache
from pathlib import Path

import hostler

_PARSER = threading.Lock()  # Python 3.11 refuses good code now and then where two threads parse at once


@lru_cache(maxsize=8)
def standalone(module: str) -> str:
    """The text of this module; ValueError if it cannot stand alone."""
    program = _Module(module)
    parts = _Definitions({name: program.text(name) for name in program.defined})
    for name in program.foreign:
        parts.take(program, name)
    lines, begin = list(program.lines), 0
    for statement in program.body:
        first, end = statement.lineno - 1, statement.end_lineno or 0
        if _is_ours(statement):
            lines[first:end] = [""] * (end - first)
        elif isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            begin = end
        else:
            program.check(statement)
    imports = sorted(text for text in parts.ordered if text.startswith(("import ", "from ")))
    others = (f"\n\n{text}" for text in parts.ordered if text not in imports)
    return "\n".join([*lines[:begin], "", *imports, *others, "", *lines[begin:], ""])


class _Definitions:
    """Definitions of other modules, `ordered` so that each comes after those that it uses."""

    def __init__(self, meanings: dict[str, str]) -> None:
        self.ordered: list[str] = []
        self._meanings, self._taken = meanings, set[str]()
        self._modules: dict[str, _Module] = {}

    def take(self, module: _Module, name: str) -> None:
        if source := module.foreign.get(name):
            found = self._modules.get(source) or _Module(source)
            self._modules[source] = found
            if name not in found.defined and name not in found.foreign:
                raise ValueError(f"{module.name}: {source} does not define {name}")
            return self.take(found, name)
        if name not in module.defined:
            return None  # a builtin, or a function's own
        text, statement = module.text(name), module.defined[name]
        if self._meanings.setdefault(name, text) != text:
            raise ValueError(f"{module.name}: {name} means something else in another module")
        if text not in self._taken:
            self._taken.add(text)
            for used in module.check(statement):
                self.take(module, used)
            self.ordered.append(text)
        return None


class _Module:
    """Top-level names of a module: `defined` there, or `foreign`, with the module that defines them."""

    def __init__(self, name: str) -> None:
        path = Path(hostler.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if not path.is_file():
            raise ValueError(f"{name} is a package: import names from one of its modules")
        text = path.read_text(encoding="utf-8")
        with _PARSER:
            self.name, self.lines, self.body = name, text.splitlines(), ast.parse(text).body
        self.defined: dict[str, ast.stmt | str] = {}  # imports as text, each for itself
        self.foreign: dict[str, str] = {}
        for statement in self.body:
            self._enter(statement)

    def text(self, name: str) -> str:
        found = self.defined[name]
        if isinstance(found, str):
            return found
        decorators: list[ast.expr] = getattr(found, "decorator_list", [])
        first = min([found.lineno, *(decorator.lineno for decorator in decorators)])
        return "\n".join(self.lines[first - 1 : found.end_lineno])

    def check(self, statement: ast.stmt | str) -> list[str]:
        """Names in the statement; ValueError if it imports what is not there where it runs."""
        nodes = list(ast.walk(statement)) if isinstance(statement, ast.stmt) else []
        if any(_is_ours(node) for node in nodes):
            raise ValueError(f"{self.name} imports hostler inside of a function")
        return [node.id for node in nodes if isinstance(node, ast.Name)]

    def _enter(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            source = statement.module if isinstance(statement, ast.ImportFrom) else ""
            for alias in statement.names:
                if _is_ours(statement):
                    self.foreign[alias.asname or alias.name] = str(source)
                elif source != "__future__":
                    begin = f"from {source} " if source else ""
                    self.defined[alias.asname or alias.name] = f"{begin}import {ast.unparse(alias)}"
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            self.defined[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            self.defined |= {node.id: statement for node in names if isinstance(node.ctx, ast.Store)}


def _is_ours(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "hostler"
