"""Constants and callables in source, as far as they can be told without running it. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
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


def joined_text(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """A constant, or a text that is put together of constants: `"--" + name`, f"--{name}"."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [joined_text(node.left, names), joined_text(node.right, names)]
    elif isinstance(node, ast.JoinedStr):
        parts = [joined_text(part, names) for part in node.values]
    elif isinstance(node, ast.FormattedValue) and node.conversion == -1 and node.format_spec is None:
        parts = [constant(node.value, names)]
    else:
        return constant(node, names)
    return "".join(parts) if all(isinstance(part, str) for part in parts) else UNKNOWN


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


# Words for true and false. Of one letter both must be there to be believed.
_WORDS = "True False, TRUE FALSE, yes no, Yes No, YES NO, on off, On Off, ON OFF, 1 0"
_PAIRS = tuple((true, false) for pair in _WORDS.split(", ") for true, false in [pair.split()])
_LETTERS = (("y", "n"), ("Y", "N"), ("t", "f"), ("T", "F"))


def words_of_booleans(values: Iterable[object]) -> tuple[str, str] | None:
    """The words for true and false among those that a parser knows; None where `true` is one, or none is."""
    texts = {value for value in values if isinstance(value, str)}
    if "true" in texts:
        return None
    known = (pair for pair in _PAIRS if pair[0] in texts)
    return next(known, None) or next((pair for pair in _LETTERS if {*pair} <= texts), None)


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
    readerses: dict[str, set[Reader]] = {}
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
            readerses.setdefault(name, set()).add(how)
    return {name: ways.pop() for name, ways in readerses.items() if len(ways) == 1}


def compared_later(nodes: Iterator[ast.AST]) -> dict[str, tuple[str, str]]:
    """Words for true and false that scripts compare a parsed text with, by the text's last name: `True` of
    `args.amp == "True"`."""
    texts: dict[str, list[object]] = {}
    for node in nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In)):
            value = constant(node.comparators[0], {})
            name = _item(node.left) or last_name(node.left)
            texts.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    found = {name: words_of_booleans(some) for name, some in texts.items()}
    return {name: pair for name, pair in found.items() if name and pair}


def _item(node: ast.AST | None) -> str:
    """`layers` of config["layers"], options["--layers"] or options.get("--layers")."""
    part = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call) and last_name(node.func) == "get" and node.args:
        part = node.args[0]
    key = constant(part, {})
    return key.lstrip("-") if isinstance(key, str) else ""


def _of_function(body: ast.AST) -> Reader:
    texts = {node.value for node in ast.walk(body) if isinstance(node, ast.Constant)}
    called = {last_name(call.func) for call in calls(list(ast.walk(body)))}
    if called & {"literal_eval", "eval"}:
        return Reader(lists="json", literal=True)
    if called & {"loads", "safe_load"}:
        return Reader(lists="json")
    lists = "comma" if "split" in called and "," in texts else "joined" if _splits_at_spaces(body) else ""
    lowers = bool(called & {"lower", "casefold"})
    known = {text.lower() if lowers else text for text in texts if isinstance(text, str)}
    pair = None if "strtobool" in called else words_of_booleans(known)
    if pair is None and called & {"int", "float"} and "true" not in known:
        pair = ("1", "0")
    return Reader(*pair, lists) if pair else Reader(lists=lists)


def _splits_at_spaces(body: ast.AST) -> bool:
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "split"
        and not call.keywords
        and (not call.args or constant(call.args[0], {}) == " ")
        for call in calls(list(ast.walk(body)))
    )
