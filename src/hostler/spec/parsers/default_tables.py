"""Options that a loop makes of a table of defaults, each with the type of its default. Pure.

    for key, value in DEFAULTS.items():
        parser.add_argument(f"--{key}", type=type(value), default=value)

Of a boolean that type is `bool`, for which every word but an empty one is true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hostler.spec.parsers.option import Option
from hostler.spec.parsers.sources import ScriptSource
from hostler.spec.parsers.values import calls, constant, keywords, last_name
from hostler.spec.style import Form


def options(found: Iterable[ScriptSource], add: str) -> Iterator[Option]:
    """The booleans among them. `add`: the method of a parser that makes an option."""
    found = tuple(found)
    made = [
        (source, call)
        for source in found
        for call in calls(source.nodes())
        if last_name(call.func) == add and any(_is_made(word) for word in call.args)
    ]
    if len(made) != 1:  # a second one may be for booleans
        return
    source, call = made[0]
    given = keywords(call)
    if given is None or "action" in given or "nargs" in given or not _is_of_default(given.get("type")):
        return
    for name in dict.fromkeys(name for one in found for name in _booleans(one)):
        option = f"--{name}"
        form = Form("value", option=option, true=(option, "true"), false=(f"{option}=",))
        yield Option((option,), name, form, where=f"{source.shown}:{call.lineno}")


def _is_made(word: ast.expr) -> bool:
    """Whether it is `"--" + key` or f"--{key}"."""
    if isinstance(word, ast.BinOp) and isinstance(word.op, ast.Add):
        return constant(word.left, {}) == "--" and isinstance(word.right, (ast.Name, ast.Attribute))
    if not isinstance(word, ast.JoinedStr) or len(word.values) != 2:
        return False
    head, key = word.values
    return constant(head, {}) == "--" and isinstance(key, ast.FormattedValue) and key.format_spec is None


def _is_of_default(node: ast.AST | None) -> bool:
    """Whether it is `type(value)`, or the `field.type` of a dataclass."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type"
    return isinstance(node, ast.Attribute) and node.attr == "type"


def _booleans(source: ScriptSource) -> Iterator[str]:
    """Names that tables and classes of the module give a boolean."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = constant(key, {})
                if isinstance(name, str) and isinstance(constant(value, {}), bool):
                    yield name
        elif isinstance(node, ast.Call) and last_name(node.func) == "dict":
            yield from (
                word.arg for word in node.keywords if word.arg and isinstance(constant(word.value, {}), bool)
            )
        elif isinstance(node, ast.ClassDef):
            fields = [line for line in node.body if isinstance(line, ast.AnnAssign)]
            yield from (
                line.target.id
                for line in fields
                if isinstance(line.target, ast.Name) and last_name(line.annotation) == "bool"
            )
