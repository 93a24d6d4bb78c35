"""Sub-commands of argparse: which `add_argument` calls belong to one that the command's words do not name.

A sub-parser is followed through variables, groups and functions that get it. A call whose parser cannot be
told, and every call where the words name no sub-command, count for all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hostler.spec.parsers.sources import ScriptSource, functions
from hostler.spec.parsers.values import constant, keywords, last_name

_SAME = ("add_argument_group", "add_mutually_exclusive_group")  # of a parser: options of it belong to it
_ROUNDS = 3  # functions that hand a parser on

Names = frozenset[str]  # of a sub-command; empty: of the script itself, or not known
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOBODY: Names = frozenset()


def left_out(found: Iterable[ScriptSource], words: Sequence[str]) -> set[ast.Call]:
    """Calls on parsers of sub-commands that these words of a command do not choose."""
    found = tuple(found)
    if not any(isinstance(n, ast.Attribute) and n.attr == "add_parser" for s in found for n in s.nodes()):
        return set()
    owners = _owners(found)
    names = frozenset[str]().union(*owners.values())
    positional = list(words)
    options = [at for at, word in enumerate(words) if word.startswith("-")]
    chosen = names & set(positional[: options[0]] if options else positional)
    if not chosen:
        chosen = frozenset([word for word in words if word in names][:1])
    return {call for call, own in owners.items() if chosen and own and not own & chosen}


def _owners(found: tuple[ScriptSource, ...]) -> dict[ast.Call, Names]:
    """Every method call, and the sub-command of the parser that it is called on."""
    known = functions(found)
    handed: dict[str, dict[str, Names]] = {}  # function → parameter → sub-commands whose parsers it gets
    owners: dict[ast.Call, Names] = {}
    for _ in range(_ROUNDS):
        before, handed = handed, {}
        for source in found:
            top = _Block(source.statements, source, {}, {})
            for scope in _scopes(source, top, before):
                owners |= scope.owners
                for call in scope.owners:
                    function = known.get(last_name(call.func))
                    if isinstance(function, _Function):
                        _hand_on(call, function, scope, handed)
    return owners


def _scopes(source: ScriptSource, top: _Block, handed: Mapping[str, Mapping[str, Names]]) -> Iterator[_Block]:
    yield top
    for node in source.nodes():
        if isinstance(node, _Function):
            yield _Block(node.body, source, top.bound, handed.get(node.name, {}))


def _hand_on(call: ast.Call, function: _Function, scope: _Block, handed: dict[str, dict[str, Names]]) -> None:
    """Note which parsers a call hands to the parameters of a function; one unknown makes the parameter so."""
    parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    given = [*zip(parameters, call.args, strict=False), *((w.arg or "", w.value) for w in call.keywords)]
    table = handed.setdefault(function.name, {})
    for name, value in given:
        own, others = scope.owner(value), table.get(name)
        table[name] = own if others is None else own | others if own and others else _NOBODY


class _Block:
    """Statements of a module or a function, in their order, with the parsers that its names are bound to."""

    def __init__(
        self,
        statements: Iterable[ast.stmt],
        source: ScriptSource,
        outer: Mapping[str, Names],
        given: Mapping[str, Names],
    ) -> None:
        self._source = source
        self.bound: dict[str, Names] = {**outer, **given}
        self.owners: dict[ast.Call, Names] = {}
        for node in sorted(_own(statements), key=lambda node: (node.lineno, node.col_offset)):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.bound[target.id] = self.owner(node.value)
            elif isinstance(node, ast.Call):
                self.owners[node] = self.owner(node.func)

    def owner(self, node: ast.AST) -> Names:
        """The sub-command of a parser, a group of it, or a method of either."""
        if isinstance(node, ast.Name):
            return self.bound.get(node.id, _NOBODY)
        if isinstance(node, ast.Attribute):
            return self.owner(node.value)
        if not isinstance(node, ast.Call):
            return _NOBODY
        made = last_name(node.func)
        if made == "add_parser" and isinstance(node.func, ast.Attribute):
            nodes = keywords(node) or {}
            name = constant(node.args[0] if node.args else nodes.get("name"), self._source.names)
            others = constant(nodes.get("aliases"), self._source.names) or []
            return frozenset([name, *others]) if isinstance(name, str) else _NOBODY
        return self.owner(node.func) if made in _SAME else _NOBODY


def _own(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt | ast.expr]:
    """Statements and expressions that are not inside another function."""
    nodes: list[ast.AST] = list(statements)
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.stmt, ast.expr)):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            nodes += ast.iter_child_nodes(node)
