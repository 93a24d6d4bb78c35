"""Constants and callables in source, as far as they can be told without running it. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from hostler.frozen import dataclass


class _Unknown:
    def __bool__(self) -> bool:
        return False


UNKNOWN: Any = _Unknown()


def constant(node: ast.AST | None, names: Mapping[str, Any]) -> Any:
    """The value of an expression; UNKNOWN where it takes running. `names`: what modules bind to constants."""
    if node is None:
        return None
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [constant(item, names) for item in node.elts]
        return UNKNOWN if any(item is UNKNOWN for item in items) else items
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand, names)
        return -value if isinstance(value, (int, float)) else UNKNOWN
    return UNKNOWN


def constants(tree: ast.Module) -> dict[str, Any]:
    """Names that a module binds once, to a constant."""
    bound: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    value = constant(node.value, {})
                    bound[target.id] = UNKNOWN if target.id in bound else value
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)) and isinstance(node.target, ast.Name):
            bound[node.target.id] = UNKNOWN
        elif isinstance(node, ast.arg):
            bound[node.arg] = UNKNOWN
    return {name: value for name, value in bound.items() if value is not UNKNOWN}


def last_name(node: ast.AST | None) -> str:
    """`loads` of json.loads, `bool` of bool; '' of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def calls(nodes: Iterator[ast.AST] | list[ast.AST]) -> Iterator[ast.Call]:
    return (node for node in nodes if isinstance(node, ast.Call))


def keywords(call: ast.Call) -> dict[str, ast.AST] | None:
    """Keyword arguments by name; None where some come from a table."""
    named = {word.arg: word.value for word in call.keywords}
    if None in named:
        return None
    return {str(name): value for name, value in named.items()}


@dataclass(frozen=True)
class Reader:
    """How a `type=` reads one word: words for true and false, and lists. '' and None: not known."""

    true: str | None = None
    false: str | None = None
    lists: str = ""
    literal: bool = False


def reader(node: ast.AST | None, functions: Mapping[str, ast.AST]) -> Reader:
    """The reader that an expression after `type=` names. `functions`: those whose source is there."""
    name = last_name(node)
    if name == "bool" and isinstance(node, ast.Name):
        return Reader("true", "")  # bool("false") is True
    if name in ("int", "float") and isinstance(node, ast.Name):
        return Reader("1", "0")
    if isinstance(node, ast.Subscript):  # jsonargparse: List[int]
        return Reader(lists="json")
    if name in ("loads", "safe_load", "full_load"):
        return Reader(lists="json")
    if name in ("literal_eval", "eval"):
        return Reader(lists="json", literal=True)
    body = node if isinstance(node, ast.Lambda) else functions.get(name)
    return _of_function(body) if body is not None else Reader()


def read_later(nodes: Iterator[ast.AST]) -> dict[str, Reader]:
    """How scripts read a list from a text that they have parsed, by the text's last name: `layers` of
    `args.layers.split(",")`, `json.loads(FLAGS.layers)`. A name that is read in several ways is left out."""
    found: dict[str, set[Reader]] = {}
    for call in calls(nodes):
        name, read = last_name(call.func), call.args[0] if call.args else None
        if name == "split" and isinstance(call.func, ast.Attribute):
            between = constant(call.args[0], {}) if call.args else " "
            forms = {",": "comma", " ": "joined"}
            read, how = call.func.value, Reader(lists=forms.get(between, "") if type(between) is str else "")
        else:
            how = reader(call.func, {})
        name = _item(read) or last_name(read)
        if how.lists and name:
            found.setdefault(name, set()).add(how)
    return {name: ways.pop() for name, ways in found.items() if len(ways) == 1}


def _item(node: ast.AST | None) -> str:
    """`layers` of config["layers"]."""
    key = constant(node.slice, {}) if isinstance(node, ast.Subscript) else None
    return key if isinstance(key, str) else ""


def _of_function(body: ast.AST) -> Reader:
    texts = {node.value for node in ast.walk(body) if isinstance(node, ast.Constant)}
    called = {last_name(call.func) for call in calls(list(ast.walk(body)))}
    if called & {"literal_eval", "eval"}:
        return Reader(lists="json", literal=True)
    if called & {"loads", "safe_load"}:
        return Reader(lists="json")
    lists = "comma" if "split" in called and "," in texts else ""
    if "True" in texts and "true" not in texts and not called & {"lower", "casefold", "strtobool"}:
        return Reader("True", "False", lists)
    return Reader(lists=lists)
