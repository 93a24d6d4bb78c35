"""Every text that a person may read, with its place: `python tests/messages.py [SOURCE] > FILE`.

A program cannot know who reads a text, so it takes each one that has two words: errors and their hints, help,
questions, pages. Docstrings are left out but those of verbs, which are their help. A value inside a text
is shown as its expression in braces.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hostler"
OTHERS = ("emulators/", "testing/")  # texts for people who write tests
TWO_WORDS = re.compile(r"[A-Za-z}’'`]{2,}[,:;]? +[{(`'\"-]*[A-Za-z]{2,}")


@dataclass(frozen=True)
class Message:
    """A text of the source and where it stands."""

    file: str
    line: int
    kind: str  # the call or keyword that it is given to; "" for others
    text: str


def messages(source: Path = SOURCE) -> Iterator[Message]:
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if not name.startswith(OTHERS):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            yield from _of_module(name, tree)


def _of_module(name: str, tree: ast.Module) -> Iterator[Message]:
    silent = _docstrings(tree)
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, kind = stack.pop()
        if node in silent:
            continue
        text = _text(node)
        if text is not None:
            if TWO_WORDS.search(text):
                yield Message(name, node.lineno, kind, " ".join(text.split()))  # type: ignore[attr-defined]
            if not isinstance(node, ast.JoinedStr):
                continue
        stack.extend(reversed([(child, _kind(node, child, kind)) for child in _children(node)]))


def _docstrings(tree: ast.Module) -> set[ast.AST]:
    """Docstrings that nobody sees at a terminal."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            verb = any("click." in ast.unparse(one) for one in getattr(node, "decorator_list", []))
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and not verb:
                found.add(first.value)
    return found


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that may hold texts: of an f-string, those of its values alone."""
    if isinstance(node, ast.JoinedStr):
        yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
    else:
        yield from ast.iter_child_nodes(node)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else str(part.value)  # type: ignore[attr-defined]
            for part in node.values
        )
    return None


def _kind(node: ast.AST, child: ast.AST, kind: str) -> str:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] if child is not node.func else kind
    if isinstance(node, ast.keyword):
        return node.arg or kind
    return kind


if __name__ == "__main__":
    for message in messages(Path(sys.argv[1]) if sys.argv[1:] else SOURCE):
        print(f"{message.file}:{message.line}\t{message.kind}\t{message.text}")
