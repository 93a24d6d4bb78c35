"""Platforms are named in their own folders alone: `python tests/platform_names.py [SOURCE]`, for `make lint`.

Outside `backends/` no file, function, variable or argument is called after a platform, no text is just its
name, no fleet is compared with one, and none of their modules is imported: `backends/registry.py` is asked.
Allowed are other tools' files, the emulators and the demo on one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hostler"
ALLOWED = ("backends/", "spec/formats/", "emulators/", "testing/", "cli/begin/demo", "cli/begin/verbs.py")
ALSO = ("k8s", "gcp")  # other names of theirs
COMMON = ("local", "ssh")  # words that are not only the names of backends


def complaints(source: Path) -> Iterator[str]:
    folders = [path.parent.name for path in (source / "backends").glob("*/__init__.py")]
    own = re.compile(rf"(?:^|_)(?:{'|'.join([*ALSO, *(set(folders) - set(COMMON))])})(?:_|$)", re.IGNORECASE)
    imported = re.compile(rf"hostler\.backends\.(?:{'|'.join(folders)})(?:\.|$)")
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if not name.startswith(ALLOWED):
            if own.search(path.stem):
                yield f"{name}: the file's name"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield from (f"{name}:{node.lineno} {said}" for said in _said(node, own, imported, folders))  # type: ignore[attr-defined]


def _said(
    node: ast.AST, own: re.Pattern[str], imported: re.Pattern[str], folders: list[str]
) -> Iterator[str]:
    for name in _modules(node):
        if imported.match(name):
            yield f"import of {name}"
    for name in _names(node):
        if own.search(name):
            yield f"the name {name}"
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and own.fullmatch(node.value.lstrip("-"))
    ):
        yield f"the text {node.value!r}"
    if isinstance(node, ast.Compare) and ".backend" in ast.unparse(node):
        parts = [part for one in (node.left, *node.comparators) for part in ast.walk(one)]
        if any(isinstance(part, ast.Constant) and part.value in folders for part in parts):
            yield f"the question {ast.unparse(node)}"
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Fleet":
        given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "backend")]
        if any(isinstance(one, ast.Constant) and one.value in folders for one in given):
            yield f"the fleet {ast.unparse(node)}"


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)][::-1]
    return []


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)]
    if isinstance(node, (ast.arg, ast.keyword)):
        return [node.arg or ""]
    return []


if __name__ == "__main__":
    found = list(complaints(Path(sys.argv[1]) if sys.argv[1:] else SOURCE))
    print("\n".join(found) if found else "No platform is named outside its folder.")
    sys.exit(bool(found))
