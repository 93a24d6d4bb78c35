"""A program of hostler as one text that any Python runs, with nothing of hostler on the machine.

Definitions that it imports from hostler by name, and all that these use in turn, stand before its own. They
share one namespace there, so a name that would get two meanings is refused.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

import hostler


@lru_cache(maxsize=8)
def standalone(module: str) -> str:
    """The text of this module; ValueError if it cannot stand alone."""
    program, parts = _Module(module), _Parts()
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
            _check(program, statement)
    for name in program.defined:
        parts.check(program, name)
    return "\n".join([*lines[:begin], "", *parts.text(), *lines[begin:], ""])


class _Parts:
    """Definitions of other modules, each after those that it uses."""

    def __init__(self) -> None:
        self._modules: dict[str, _Module] = {}
        self._meanings: dict[str, str] = {}
        self._ordered: list[str] = []

    def take(self, module: _Module, name: str) -> None:
        if source := module.foreign.get(name):
            found = self._modules.get(source) or _Module(source)
            self._modules[source] = found
            if name not in found.defined and name not in found.foreign:
                raise ValueError(f"{module.name}: {source} does not define {name}")
            self.take(found, name)
        elif name in self._meanings:
            self.check(module, name)
        elif name in module.defined:  # else it is a builtin, or a function's own
            self._meanings[name] = text = module.text(name)
            statement = module.defined[name]
            if isinstance(statement, ast.stmt):
                _check(module, statement)
                for used in _names(statement):
                    self.take(module, used)
            if text not in self._ordered:
                self._ordered.append(text)

    def check(self, module: _Module, name: str) -> None:
        """Refuse a name of `module` that was taken with another meaning."""
        if name in module.defined and self._meanings.get(name, module.text(name)) != module.text(name):
            raise ValueError(f"{module.name}: {name} means something else in another module")

    def text(self) -> list[str]:
        imports = sorted(text for text in self._ordered if text.startswith(("import ", "from ")))
        return [*imports, *(f"\n\n{text}" for text in self._ordered if text not in imports), ""]


class _Module:
    """Top-level names of a module: `defined` there, or `foreign`, with the module that defines them."""

    def __init__(self, name: str) -> None:
        path = Path(hostler.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if not path.is_file():
            raise ValueError(f"{name} is a package: import names from one of its modules")
        text = path.read_text(encoding="utf-8")
        self.name, self.lines, self.body = name, text.splitlines(), ast.parse(text).body
        self.defined: dict[str, ast.stmt | str] = {}  # imports as text, each for itself
        self.foreign: dict[str, str] = {}
        for statement in self.body:
            self._enter(statement)

    def text(self, name: str) -> str:
        found = self.defined[name]
        return found if isinstance(found, str) else "\n".join(self.lines[_first(found) : found.end_lineno])

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
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            self.defined |= {name: statement for target in targets for name in _names(target)}


def _first(statement: ast.stmt) -> int:
    """Its first line: that of its first decorator, if it has any."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)]) - 1


def _names(node: ast.AST) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


def _is_ours(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "hostler"


def _check(module: _Module, statement: ast.stmt) -> None:
    if any(_is_ours(node) for node in ast.walk(statement)):
        raise ValueError(f"{module.name} imports hostler inside of a function")
