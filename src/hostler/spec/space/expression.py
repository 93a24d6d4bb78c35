"""Arithmetic over parameters, read by a small evaluator of its own: nothing is executed.

Names are parameters (`model.width` for a nested one; `-` in a name is written `_`). Every size is bounded,
so that no expression takes long. What the platform's mathematics library computes is rounded to twelve
digits, so that every machine gets the same bits. Errors are ValueErrors that name the column.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.spec.space import ladder

AXES = ("range", "linspace", "logspace", "geomspace")

_LONGEST_TEXT = 1000
_BITS = 13_000  # of a whole number: what can be written down and read back
_DEEPEST = 60


@dataclass(frozen=True)
class Expression:
    """A checked expression: `names` are the parameters it needs."""

    text: str
    names: frozenset[str]
    makes_axis: bool  # its outermost call makes a row of values
    _tree: ast.expr = field(compare=False, repr=False)

    def value(self, params: Mapping[str, Any]) -> Any:
        """Its value for these (flat) parameters; ValueError if there is none."""
        found = _evaluate(self._tree, params)
        return list(found) if isinstance(found, range) else found


def read(text: str) -> Expression:
    """The expression a text holds; ValueError if it holds none, or more than arithmetic."""
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"longer than {_LONGEST_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        at = error.offset if isinstance(error, SyntaxError) and error.offset else 1
        raise ValueError(f"{text!r} is not an expression, at column {at}") from None
    _check(tree, _DEEPEST)
    axis = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in AXES
    return Expression(text, frozenset(_names(tree)), axis, tree)


def lookup(name: str, params: Mapping[str, Any]) -> str | None:
    """The parameter a name means; a dash in a parameter's name is written as an underscore."""
    if name in params:
        return name
    return next((key for key in params if key.replace("-", "_") == name), None)


def _names(node: ast.AST) -> Iterator[str]:
    """Parameters that it reads; a function's name is none."""
    name = _name(node)
    if name:
        yield name
        return
    for child in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
        yield from _names(child)


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _name(node.value)
        return f"{before}.{node.attr}" if before else None
    return None


def _check(node: ast.AST, depth: int) -> None:
    if depth == 0:
        raise ValueError("nested too deep")
    if isinstance(node, ast.Attribute) and _name(node) is None:
        raise _wrong(node, "a dot stands between the parts of a parameter's name only")
    if isinstance(node, ast.Call):
        _check_call(node)
    elif not isinstance(node, _ALLOWED):
        raise _wrong(node, f"{type(node).__name__} cannot stand in an expression")
    if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float, str, type(None))):
        raise _wrong(node, f"{node.value!r} cannot stand in an expression")
    for child in ast.iter_child_nodes(node):
        _check(child, depth - 1)


def _check_call(node: ast.Call) -> None:
    if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
        shown = ast.unparse(node.func)
        raise _wrong(
            node, f"no function named {shown} ({did_you_mean(shown, _FUNCTIONS, ', '.join(_FUNCTIONS))})"
        )
    if node.keywords or any(isinstance(word, ast.Starred) for word in node.args):
        raise _wrong(node, f"{node.func.id} takes plain values only")


def _wrong(node: ast.AST, message: str) -> ValueError:
    return ValueError(f"{message}, at column {getattr(node, 'col_offset', 0) + 1}")


def _evaluate(node: ast.expr, params: Mapping[str, Any]) -> Any:
    try:
        return _value(node, params)
    except _Placed:
        raise
    except ZeroDivisionError:
        raise _Placed(f"division by zero, at column {node.col_offset + 1}") from None
    except (ValueError, TypeError, OverflowError, ArithmeticError, KeyError, IndexError) as error:
        text = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise _Placed(f"{text}, at column {node.col_offset + 1}") from None


class _Placed(ValueError):
    """A ValueError that names its column already."""


def _value(node: ast.expr, params: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _parameter(str(_name(node)), params)
    if isinstance(node, ast.BinOp):
        return _binary(node.op, _evaluate(node.left, params), _evaluate(node.right, params))
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)](_evaluate(node.operand, params))
    if isinstance(node, ast.Compare):
        return _compare(node, params)
    if isinstance(node, ast.BoolOp):
        return _bool(node, params)
    if isinstance(node, ast.IfExp):
        return _evaluate(node.body if _evaluate(node.test, params) else node.orelse, params)
    if isinstance(node, ast.Call):
        return _FUNCTIONS[node.func.id](*(_evaluate(word, params) for word in node.args))  # type: ignore[attr-defined]
    if isinstance(node, ast.Subscript):
        return _evaluate(node.value, params)[_evaluate(node.slice, params)]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {_evaluate(k, params): _evaluate(v, params) for k, v in pairs if k is not None}
    return [_evaluate(item, params) for item in node.elts]  # type: ignore[attr-defined]


def _parameter(name: str, params: Mapping[str, Any]) -> Any:
    key = lookup(name, params)
    if key is None:
        raise ValueError(f"no parameter named {name} ({did_you_mean(name, params)})")
    return params[key]


def _compare(node: ast.Compare, params: Mapping[str, Any]) -> bool:
    left = _evaluate(node.left, params)
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = _evaluate(right_node, params)
        if not COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _bool(node: ast.BoolOp, params: Mapping[str, Any]) -> Any:
    found: Any = None
    for part in node.values:
        found = _evaluate(part, params)
        if bool(found) == isinstance(node.op, ast.Or):
            return found
    return found


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    texts = isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add)
    if not texts and not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        raise TypeError(f"{left!r} and {right!r} are not both numbers")
    if isinstance(op, ast.Pow):
        return _power(left, right)
    return _bounded(BINARY[type(op)](left, right))


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        if abs(base) > 1 and base.bit_length() * abs(exponent) > _BITS:
            raise OverflowError("too large a number")
        if exponent >= 0:
            return base**exponent
    return _rounded(base**exponent)


def _bounded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError("too large a number")
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise OverflowError("too large a number")
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        raise OverflowError("too long a text")
    return value


def _rounded(value: Any) -> float:
    if isinstance(value, complex):
        raise ValueError("not a real number")
    return float(f"{_bounded(float(value)):.12g}")


def _from_libm(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: _rounded(function(*values))


def _range(*ends: int) -> range:
    found = range(*ends)
    if len(found) > ladder.LONGEST:
        raise ValueError(f"a range of {len(found):,} values is too long")
    return found


_ALLOWED = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp),
    *(ast.List, ast.Tuple, ast.Dict, ast.Subscript, ast.Load, ast.And, ast.Or, ast.Not, ast.UAdd, ast.USub),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
)
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "round": round,
    "int": int,
    "float": float,
    "str": lambda value: _bounded(str(value)),
    "len": len,
    "sum": sum,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "exp": _from_libm(math.exp),
    "log": _from_libm(math.log),
    "log2": _from_libm(math.log2),
    "log10": _from_libm(math.log10),
    "range": _range,
    "linspace": ladder.between,
    "logspace": ladder.powers,
    "geomspace": ladder.geometric,
}
