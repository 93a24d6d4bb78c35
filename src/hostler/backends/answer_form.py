"""The form of a platform's answers: which fields are texts, tables, numbers or lists of tables, by name.

A proxy's page, or another service behind the address, can be JSON too. A client that checks an answer once,
as it comes, spares everybody behind it the question. Fields that nobody reads may be anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Form = Callable[[Any], bool]

# Tables whose fields people name: a label may be called like a field of the platform's.
NAMED_BY_PEOPLE = frozenset(
    ("labels", "annotations", "matchLabels", "nodeSelector", "data", "metadatas", "dimensions")
)


def text(value: Any) -> bool:
    return isinstance(value, str)


def table(value: Any) -> bool:
    return isinstance(value, dict)


def rows(value: Any) -> bool:
    """A list of tables."""
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def whole(value: Any) -> bool:
    """A whole number, or its digits."""
    if isinstance(value, str):
        return value.lstrip("-").isdecimal() and value.isascii() and len(value) < 20
    return isinstance(value, int)


def number(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < 1e300 and not math.isnan(value)


def either(*forms: Form) -> Form:
    return lambda value: any(form(value) for form in forms)


def fits(answer: Any, forms: Mapping[str, Form]) -> bool:
    """Whether every field that has a form has it, at any depth; one that is null is as good as none. Pure."""
    left = [answer]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            for name, inner in value.items():
                form = forms.get(name)
                if form is not None and inner is not None and not form(inner):
                    return False
                if name not in NAMED_BY_PEOPLE:
                    left.append(inner)
        elif isinstance(value, list):
            left += value
    return True
