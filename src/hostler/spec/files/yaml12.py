"""YAML 1.2 (core schema) and JSON text to plain values that remember their lines.

Keys are always text, a key given twice is an error, anchors and merge keys (`<<`) work, tags other than
the core ones are refused. The only importer of yaml.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import yaml

from hostler.errors import SpecError
from hostler.frozen import dataclass
from hostler.spec import scalars

Path = tuple[str | int, ...]

_CORE = "tag:yaml.org,2002:"
_DEEPEST = 100
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Document:
    """A file's value, the line of every key and item, and how its numbers and booleans were written."""

    name: str
    value: Any
    lines: Mapping[Path, int]
    texts: Mapping[Path, str] = field(default_factory=dict)

    def where(self, path: Path = ()) -> str:
        """`file:line` of a key, or of the nearest one above it that has a line."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines.get(path, 1)}"


def load(text: str, name: str) -> Document:
    """The document a text holds; as JSON if the name ends in .json. `name` is for messages."""
    if name.endswith(".json"):
        value, lines = load_json(text, name)
        return Document(name, value, lines)
    return _built(_compose(text, name), text, name)


def load_all(text: str, name: str) -> list[Document]:
    """The documents of a text, which `---` parts; empty ones are left out."""
    if name.endswith(".json"):
        return [load(text, name)]
    every = [_built(root, text, name) for root in _compose_all(text, name)]
    return [document for document in every if document.value is not None]


def _built(root: yaml.Node | None, text: str, name: str) -> Document:
    builder = _Builder(name, room=max(100_000, 10 * len(text)))
    value = None if root is None else builder.value(root, ())
    return Document(name, value, builder.lines, builder.texts)


class _Loader(_Base):  # type: ignore[misc]
    """PyYAML's parser with the core schema's idea of what a plain word is."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _CORE + (scalars.kind(value) if implicit[0] else "str")
        return _CORE + ("seq" if kind is yaml.SequenceNode else "map")


def _compose(text: str, name: str) -> yaml.Node | None:
    with _in_a_line(text, name):
        root: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    return root


def _compose_all(text: str, name: str) -> list[yaml.Node]:
    with _in_a_line(text, name):
        roots: list[yaml.Node] = list(yaml.compose_all(text, Loader=_Loader))
    return roots


@contextmanager
def _in_a_line(text: str, name: str) -> Iterator[None]:
    """The parser's message, with its line in the file."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        said = "; ".join(part for part in (error.context, error.problem) if part)
        raise SpecError(f"not YAML: {said}", where=f"{name}:{line}") from None
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:
        at = error.position if isinstance(error, yaml.reader.ReaderError) else error.start
        line = text.count("\n", 0, at) + 1
        raise SpecError("not YAML: a character that text cannot hold", where=f"{name}:{line}") from None
    except RecursionError:
        raise SpecError(f"nested more than {_DEEPEST} deep", where=f"{name}:1") from None


class _Builder:
    """Nodes to values. `room` bounds what aliases of aliases can multiply to."""

    def __init__(self, name: str, room: int) -> None:
        self.name = name
        self.room = room
        self.lines: dict[Path, int] = {}
        self.texts: dict[Path, str] = {}

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.lines.setdefault(path, _line(node))
        self.room -= 1
        if self.room < 0:
            raise self._wrong(node, "its aliases multiply to too many values")
        if len(path) > _DEEPEST:
            raise self._wrong(node, f"nested more than {_DEEPEST} deep")
        if isinstance(node, yaml.MappingNode) and node.tag == _CORE + "map":
            return self._table(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _CORE + "seq":
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _table(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for value_node in [v for k, v in node.value if _is_merge(k)]:
            merged = {**self._merged(value_node, path), **merged}
        table: dict[str, Any] = {}
        for key_node, value_node in [(k, v) for k, v in node.value if not _is_merge(k)]:
            key = self._key(key_node)
            place = (*path, key)
            if key in table:
                raise self._wrong(key_node, f"{key!r} is given twice, first on line {self.lines[place]}")
            if key in merged:
                self._forget(place)
            self.lines[place] = _line(key_node)
            table[key] = self.value(value_node, place)
        return {**{k: v for k, v in merged.items() if k not in table}, **table}

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        """Keys of `<<: *other` or `<<: [*first, *second]`; the first named wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise self._wrong(source, "<< takes a table, or a list of tables")
            inner = _Builder(self.name, self.room)
            found = inner.value(source, path)
            self.room = inner.room
            merged = {**found, **merged}
            self.lines = {**inner.lines, **self.lines}
            self.texts = {**inner.texts, **self.texts}
        return merged

    def _forget(self, path: Path) -> None:
        """A key of a table's own replaces the merged one, lines and all."""
        for known in [p for p in self.lines if p[: len(path)] == path]:
            del self.lines[known]
            self.texts.pop(known, None)

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._wrong(node, "a key must be one word or a quoted text")
        return str(node.value)

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        tag = node.tag.removeprefix(_CORE)
        if tag == "str" and isinstance(node, yaml.ScalarNode):
            return node.value
        kind = scalars.kind(node.value) if isinstance(node, yaml.ScalarNode) else ""
        if tag == "float" and kind == "int":
            return float(node.value)
        if tag != kind:
            raise self._wrong(node, f"a value of type !{tag.removeprefix('!')} cannot stand here")
        if kind != "null":
            self.texts[path] = node.value
        return scalars.scalar(node.value)

    def _wrong(self, node: yaml.Node, message: str) -> SpecError:
        return SpecError(message, where=f"{self.name}:{_line(node)}")


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == "<<" and not key.style


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


# JSON text to plain values, with the line of every key and item; a key given twice is an error.


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+', re.DOTALL)


def load_json(text: str, name: str) -> tuple[Any, dict[Path, int]]:
    """(value, lines); `name` is for messages."""
    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise SpecError(f"not JSON: {error.msg}", where=f"{name}:{error.lineno}") from None
    except RecursionError:
        raise SpecError("nested too deep", where=f"{name}:1") from None
    except ValueError:  # Python reads no more than 4,300 digits
        raise SpecError("a number has thousands of digits", where=f"{name}:1") from None
    return value, _lines(text, name)


def _lines(text: str, name: str) -> dict[Path, int]:
    """Line of every key and item, by a walk over the tokens of text that is known to be JSON."""
    lines: dict[Path, int] = {}
    inside: list[str | int | None] = []  # the place in each open table (its key, None before it) or list
    for token, line in _tokens(text):
        if token in ("}", "]"):
            inside.pop()
        elif token == ",":
            inside[-1] = inside[-1] + 1 if isinstance(inside[-1], int) else None
        elif inside and inside[-1] is None and token != ":":
            inside[-1] = json.loads(token)
            path = _path(inside)
            if path in lines:
                raise SpecError(
                    f"{path[-1]!r} is given twice, first on line {lines[path]}", where=f"{name}:{line}"
                )
            lines[path] = line
        elif token != ":":
            lines.setdefault(_path(inside), line)
            if token in ("{", "["):
                inside.append(None if token == "{" else 0)
    return lines


def _path(inside: list[str | int | None]) -> Path:
    return tuple(place for place in inside if place is not None)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield match[0], line
