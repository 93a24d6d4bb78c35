"""A text that stands for a list, `[float(x) for x in 2.0 ** np.arange(-6, 3)]`, read without executing it.

The evaluator walks Python's syntax tree and knows a few functions; whatever else a text holds is refused.
Steps, sizes and depth are bounded, so that no text takes long. A text that is accepted gives what Python
would give; a set is put in order. Errors are ValueErrors that name the column.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hostler.spec.formats import numpy_numbers as numpy
from hostler.spec.formats.list_functions import (
    FUNCTIONS,
    SCALARS,
    OrderedSet,
    check_options,
    index_of,
    items_of,
    plain_value,
    shown,
    truth,
)
from hostler.spec.formats.numpy_numbers import LONGEST, Numbers
from hostler.spec.nearest import did_you_mean
from hostler.spec.space.expression import BINARY, COMPARE, UNARY

HINT = "where the text itself is meant, put it into a list: ['…']"

_LONGEST_TEXT = 2000
_DEEPEST = 40
_STEPS = 20_000  # of one evaluation: some hundredths of a second
_BITS = 4096  # of a whole number

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_BEGINNINGS = re.compile(
    r"""
    [\[(]                                  # a list, a tuple, a text in brackets
    | \{ [^:]* (\}|\bfor\b)                # a set; what has a colon first is a table
    | (?!dict\b) [^\W\d][\w.]* \s* \(      # a call: `dict(…)` is the trainer's own way to write a table
    | .* \b(np|numpy)\.\w+\s*\(            # numpy anywhere
    | [-+\d.eE_\s(]* \*\*                  # a power of numbers
    | NUMBER (\s*,\s* NUMBER)+ ,? $        # numbers with commas between them
    """.replace("NUMBER", _NUMBER),
    re.VERBOSE | re.DOTALL,
)


def stands_for_list(text: str) -> bool:
    """Whether a text begins like an expression that makes a list; other texts are values themselves."""
    return _BEGINNINGS.match(text.strip()) is not None


def read(text: str) -> list[Any]:
    """The values that a text stands for; ValueError if it cannot be read."""
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a text of {len(text):,} characters; at most {_LONGEST_TEXT:,} are read")
    found = _Evaluator(text).value(_tree(text), {})
    row = isinstance(found, Numbers) and not found.single
    if not row and not isinstance(found, (list, tuple, range, OrderedSet)):
        raise ValueError(f"{text.strip()[:60]} is not a list, at column 1")
    return [_plain(item) for item in items_of(found)]


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{error.msg}, at column {error.offset or 1}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ValueError("nested too deep, at column 1") from None


Scope = Mapping[str, Any]


class _Evaluator:
    """The values of one text's parts, by their kind; each costs a step."""

    def __init__(self, text: str) -> None:
        self._steps = _STEPS
        self._depth = 0
        self._lines = text.strip().count("\n")

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """The value of a part; a _Refused names the innermost part that has none."""
        try:
            self._spend(1)
            self._depth += 1
            if self._depth > _DEEPEST:
                raise ValueError("nested too deep")
            found = self._kind(node)(self, node, scope)
            self._depth -= 1
            return _bounded(found)
        except _Refused:
            raise
        except ZeroDivisionError:
            raise self._refused(node, "division by zero") from None
        except (ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise self._refused(node, str(error)) from None

    def _kind(self, node: ast.expr) -> Callable[[_Evaluator, Any, Scope], Any]:
        kind = _KINDS.get(type(node))
        if kind is None:
            raise ValueError(f"{_WORDS.get(type(node), type(node).__name__)} cannot stand here")
        return kind

    def _refused(self, node: ast.expr, message: str) -> _Refused:
        line = f"line {node.lineno}, " if self._lines else ""
        return _Refused(f"{message}, at {line}column {node.col_offset + 1}")

    def _spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise ValueError("too many steps to be read")

    def _constant(self, node: ast.Constant, scope: Scope) -> Any:
        if not isinstance(node.value, (int, float, str, type(None))):
            raise ValueError(f"{node.value!r} cannot stand here")
        return node.value

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        if node.id not in scope:
            raise ValueError(f"nothing is named {node.id}")
        return scope[node.id]

    def _binary(self, node: ast.BinOp, scope: Scope) -> Any:
        sign = _SIGNS.get(type(node.op))
        if sign is None:
            raise ValueError(f"{type(node.op).__name__} cannot stand here")
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, Numbers) or isinstance(right, Numbers):
            if not numpy.agree(left, right):
                raise TypeError(f"{shown(left)} {sign} {shown(right)} has no value")
            numbers = numpy.combine(sign, left, right)
            self._spend(len(numbers.values))
            return numbers
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return _power(left, right) if sign == "**" else BINARY[type(node.op)](left, right)
        return self._joined(sign, left, right)

    def _joined(self, sign: str, left: Any, right: Any) -> Any:
        """Texts and lists one after the other, a list several times."""
        if sign == "+" and type(left) is type(right) and isinstance(left, (str, list, tuple)):
            self._spend(len(left) + len(right))
            return left + right
        if sign == "*" and isinstance(left, int) and isinstance(right, (list, tuple)):
            left, right = right, left
        if sign == "*" and isinstance(left, (list, tuple)) and isinstance(right, int):
            self._spend(len(left) * max(0, right))
            return left * right
        raise TypeError(f"{shown(left)} {sign} {shown(right)} has no value")

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Any:
        operation, value = UNARY.get(type(node.op)), self.value(node.operand, scope)
        if operation is None:
            raise ValueError(f"{type(node.op).__name__} cannot stand here")
        if isinstance(node.op, ast.Not):
            return not truth(value)
        return value.each(operation) if isinstance(value, Numbers) else operation(value)

    def _compare(self, node: ast.Compare, scope: Scope) -> bool:
        left = plain_value(self.value(node.left, scope))
        for sign, right_node in zip(node.ops, node.comparators, strict=True):
            right = plain_value(self.value(right_node, scope))
            if type(sign) not in COMPARE:
                raise ValueError(f"{type(sign).__name__} cannot stand here")
            if isinstance(sign, (ast.In, ast.NotIn)) and not isinstance(right, str):
                right = [plain_value(item) for item in self._walked(right)]
            if not COMPARE[type(sign)](left, right):
                return False
            left = right
        return True

    def _bool(self, node: ast.BoolOp, scope: Scope) -> Any:
        found: Any = None
        for part in node.values:
            found = self.value(part, scope)
            if truth(found) == isinstance(node.op, ast.Or):
                return found
        return found

    def _choice(self, node: ast.IfExp, scope: Scope) -> Any:
        return self.value(node.body if truth(self.value(node.test, scope)) else node.orelse, scope)

    def _listed(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Any:
        found: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                found += self._walked(self.value(item.value, scope))
            else:
                found.append(self.value(item, scope))
        return (
            tuple(found)
            if isinstance(node, ast.Tuple)
            else OrderedSet.of(found)
            if isinstance(node, ast.Set)
            else found
        )

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Any:
        found = list(self._cells(node.elt, node.generators, scope))
        return OrderedSet.of(found) if isinstance(node, ast.SetComp) else found

    def _cells(self, cell: ast.expr, loops: list[ast.comprehension], scope: Scope) -> Iterator[Any]:
        if not loops:
            yield self.value(cell, scope)
            return
        if loops[0].is_async:
            raise ValueError("async cannot stand here")
        for item in self._walked(self.value(loops[0].iter, scope)):
            inner = {**scope, **_bound(loops[0].target, item)}
            if all(truth(self.value(condition, inner)) for condition in loops[0].ifs):
                yield from self._cells(cell, loops[1:], inner)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        at = (
            self._slice(node.slice, scope)
            if isinstance(node.slice, ast.Slice)
            else index_of(self.value(node.slice, scope))
        )
        if isinstance(value, Numbers) and not value.single:
            return value.item(at)
        if not isinstance(value, (list, tuple, str, range)):
            raise TypeError(f"{shown(value)} has no items")
        return value[at]

    def _slice(self, node: ast.Slice, scope: Scope) -> slice:
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else index_of(self.value(end, scope)) for end in ends))

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        name = _dotted(node.func)
        if name is None or name.partition(".")[0] in scope:
            return self._method(node, scope)
        if name == "map":
            return self._mapped(node, scope)
        function = FUNCTIONS.get(name.replace("numpy.", "np."))
        if function is None:
            raise ValueError(
                f"no function named {name} ({did_you_mean(name, FUNCTIONS, ', '.join(FUNCTIONS))})"
            )
        words = [self.value(word, scope) for word in node.args]
        options = {str(keyword.arg): self.value(keyword.value, scope) for keyword in node.keywords}
        check_options(name, options)
        self._spend(sum(len(word) for word in words if isinstance(word, (list, tuple, range))))
        return function(*words, **options)

    def _mapped(self, node: ast.Call, scope: Scope) -> list[Any]:
        """`map(float, row)`."""
        name = _dotted(node.args[0]) if len(node.args) == 2 else None
        if name not in SCALARS or node.keywords:
            raise ValueError(f"map takes one of {', '.join(SCALARS)}, and a list")
        items = self._walked(self.value(node.args[1], scope))
        self._spend(len(items))
        return [SCALARS[str(name)](item) for item in items]

    def _method(self, node: ast.Call, scope: Scope) -> Any:
        """`row.tolist()`, `row.round(2)`, `row.astype(float)`."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("tolist", "round", "astype"):
            raise ValueError("only functions and .tolist(), .round(), .astype() can be called")
        row = self.value(node.func.value, scope)
        if not isinstance(row, Numbers) or node.keywords or len(node.args) > 1:
            raise ValueError(f".{node.func.attr}() cannot stand here")
        if node.func.attr == "tolist":
            return row.value if row.single else list(row.values)
        if node.func.attr == "round":
            return numpy.rounded(row, *(self.value(word, scope) for word in node.args))
        name = _dotted(node.args[0]) if node.args else None
        if name not in ("int", "float"):
            raise ValueError(".astype() takes int or float")
        return row.as_type(name)

    def _walked(self, value: Any) -> list[Any]:
        found = list(items_of(value))
        self._spend(len(found))
        return found


class _Refused(ValueError):
    """A ValueError that names its column already."""


def _bound(target: ast.expr, item: Any) -> dict[str, Any]:
    """`x`, or `x, y` where every item is a pair."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise ValueError("a loop runs over names")
    parts = list(items_of(item))
    if len(parts) != len(target.elts):
        raise ValueError(f"{len(parts)} values for {len(target.elts)} names")
    record: dict[str, Any] = {}
    for name, part in zip(target.elts, parts, strict=True):
        record.update(_bound(name, part))
    return record


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}" if node.value.id in ("np", "numpy") else None
    return node.id if isinstance(node, ast.Name) else None


def _power(base: int | float, exponent: int | float) -> int | float:
    both_whole = isinstance(base, int) and isinstance(exponent, int)
    if both_whole and abs(base) > 1 and int(base).bit_length() * abs(exponent) > _BITS:
        raise ValueError("too large a number")
    found: Any = base**exponent
    if isinstance(found, complex):
        raise ValueError("not a real number")
    return found  # type: ignore[no-any-return]


def _bounded(value: Any) -> Any:
    """A value, if it is not too large to go on with."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("too large a number")
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ValueError("too large a number")
    if isinstance(value, (str, list, tuple, range)) and len(value) > LONGEST:
        raise ValueError(f"{len(value):,} values; at most {LONGEST:,} are allowed")
    return value


def _plain(value: Any) -> Any:
    """An item as a value of a parameter."""
    value = plain_value(value)
    if isinstance(value, (list, tuple, range)):
        return [_plain(item) for item in value]
    if isinstance(value, OrderedSet):
        raise ValueError("a set stands among the values, at column 1")
    return value


_SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_KINDS: dict[type[ast.expr], Callable[[_Evaluator, Any, Scope], Any]] = {
    ast.Constant: _Evaluator._constant,
    ast.Name: _Evaluator._name,
    ast.BinOp: _Evaluator._binary,
    ast.UnaryOp: _Evaluator._unary,
    ast.Compare: _Evaluator._compare,
    ast.BoolOp: _Evaluator._bool,
    ast.IfExp: _Evaluator._choice,
    ast.List: _Evaluator._listed,
    ast.Tuple: _Evaluator._listed,
    ast.Set: _Evaluator._listed,
    ast.ListComp: _Evaluator._comprehension,
    ast.SetComp: _Evaluator._comprehension,
    ast.GeneratorExp: _Evaluator._comprehension,
    ast.Subscript: _Evaluator._subscript,
    ast.Call: _Evaluator._call,
}
_WORDS = {
    ast.Attribute: "an attribute",
    ast.Lambda: "a lambda",
    ast.Dict: "a table",
    ast.JoinedStr: "an f-string",
    ast.Await: "await",
    ast.NamedExpr: ":=",
    ast.Starred: "a star",
}
