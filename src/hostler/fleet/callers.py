"""Programs that call functions elsewhere: what only calls is no code of these calls.

A list of values that grows, or a second program beside the first, leaves a function and what it imports as
they were, so that its results are found.
"""

from __future__ import annotations

import ast
import hashlib
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hostler.errors import HostlerError
from hostler.fleet.function import FILE, kept
from hostler.fleet.snapshot import changes
from hostler.fleet.snapshot.snapshot import tree_of
from hostler.fleet.snapshot.tree import Tree
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store

_CODE = re.compile(r"-[0-9a-f]{8}$")  # the end of the name of calls, which tells their code
_OF_A_PACKAGE = ("__init__", "__main__")
_WRITTEN = re.compile(  # endings of text files in which names of modules stand; Makefiles have none
    r"|\.(?:ya?ml|toml|cfg|ini|json5?|jsonnet|gin|conf|env|properties|txt|in|xml|(?:ba|z)?sh|sbatch|mk|pyx|j2)"
)
LARGE = 1_000_000  # bytes beyond which a text file is data
MANY = 1000  # text files of one folder beyond which they are data


def programs(root: Path, own: str, leave: Collection[str] = ()) -> list[str]:
    """Python files of a project that make an Executor when they are started, and that are nothing else: no
    other file imports or names them, and the function, which is in `own`, is not in them. `leave`: what is no
    code anyway."""
    names = [
        node.name for node in tree_of(root, tuple(root / name for name in leave if name), names=True).files
    ]
    texts = {name: _text(root / name) for name in names if name.endswith(".py")}
    alone = [name for name, text in texts.items() if name != own and _is_program(name, text)]
    alone = [name for name in alone if not _is_used(name, texts, own)]
    named = _words(root, names, {Path(name).stem for name in alone})
    return [name for name in alone if Path(name).stem not in named]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:  # gone, or not ours to read
        return ""


def _is_program(name: str, text: str) -> bool:
    """Whether the file makes an Executor of hostler's once it is started. `__init__.py` and `__main__.py` are
    parts of a package, whatever they do."""
    if Path(name).stem in _OF_A_PACKAGE or "hostler" not in text or "Executor" not in text:
        return False
    try:
        tree = ast.parse(text)
        names = _names_of_hostler(tree)
        makes = {node for node in ast.walk(tree) if isinstance(node, ast.Call) and _makes(node.func, names)}
        return bool(makes) and _acts(tree, makes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # nothing that Python would start
        return False


def _names_of_hostler(tree: ast.Module) -> dict[str, str]:
    """Names of its imports from hostler in a file, and what they are."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found |= {alias.asname: alias.name} if alias.asname else {top: top}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                name = "Executor" if alias.name == "*" and node.module == "hostler" else alias.name
                found[alias.asname or name] = f"{node.module}.{name}"
    return found


def _makes(called: ast.expr, names: Mapping[str, str]) -> bool:
    first, dot, rest = ast.unparse(called).partition(".")
    return f"{names.get(first, '')}{dot}{rest}" in ("hostler.Executor", "hostler.executor.Executor")


def _acts(tree: ast.Module, makes: Collection[ast.AST]) -> bool:
    """Whether a file that makes an Executor does so by being started, not by a function that others call."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in _outside(tree):
        asks = isinstance(node, ast.If) and "__name__" in _named(node.test)
        if asks or node in makes or (isinstance(node, ast.Expr) and functions & _named(node)):
            return True
    return False


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """Statements that are carried out as the file is read: everything outside functions and classes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from _outside(child)


def _named(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is_used(name: str, texts: Mapping[str, str], own: str) -> bool:
    """Whether other code may import the file, or start it; of a package that is imported, any file may be
    found by its name alone."""
    packages = list(_packages(name, texts))
    if any(own.startswith(f"{package}/") for package in packages):
        return True
    used = [_use(where) for where in (name, *packages)]
    return any(form.search(text) for other, text in texts.items() if other != name for form in used)


def _packages(name: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Folders above the file that are packages, from the innermost out."""
    folder = name.rpartition("/")[0]
    while folder and f"{folder}/__init__.py" in texts:
        yield folder
        folder = folder.rpartition("/")[0]


def _use(name: str) -> re.Pattern[str]:
    """Code that imports a file or folder, or names it in quotes."""
    stem = re.escape(Path(name).stem)
    imported = rf"(?:^|[;:])[ \t]*(?:import|from)\b(?:[^\n(\\]|\\\r?\n)*(?:\([^)]*)?\b{stem}\b"
    quoted = rf"['\"][^'\"\n]*\b{stem}(?:\.py\b[^'\"\n]*|[.:/][^\s'\"]*)?['\"]"
    return re.compile(rf"{imported}|{quoted}", re.MULTILINE)


def _words(root: Path, names: Sequence[str], wanted: set[str]) -> set[str]:
    """Those words that stand in a text file which code may find names of modules in. Prose is none, nor is a
    file among very many: that is data."""
    written = [name for name in names if _WRITTEN.fullmatch(Path(name).suffix.lower())] if wanted else []
    folders = Counter(name.rpartition("/")[0] for name in written)
    found: set[str] = set()
    for name in written:
        if folders[name.rpartition("/")[0]] <= MANY and _size(root / name) <= LARGE:
            text = _text(root / name)
            found |= {word for word in wanted - found if re.search(rf"\b{re.escape(word)}\b", text)}
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def without_main(own: str) -> Callable[[Tree], Tree]:
    """Bring the function's file without the `if __name__ == "__main__":` at its end, which is for the program
    alone: an import does not run it."""

    def shape(tree: Tree) -> Tree:
        body = _without_main(_text(tree.root / own)) if own else ""
        if not body or all(node.name != own for node in tree.files):
            return tree
        sha = hashlib.sha256(body.encode()).hexdigest()
        others = tuple(node for node in tree.nodes if node.name != own)
        return replace(tree, nodes=others).bring(own, kept(body.encode(), sha, ".py"), sha)

    return shape


def _without_main(text: str) -> str:
    """The lines before the last statement, where that asks whether the file is the program; '' else."""
    try:
        last = ast.parse(text).body[-1:]
    except (SyntaxError, ValueError):
        return ""
    if not last or not isinstance(last[0], ast.If) or last[0].orelse:
        return ""
    if ast.unparse(last[0].test) not in ("__name__ == '__main__'", "'__main__' == __name__"):
        return ""
    return "\n".join(text.split("\n")[: last[0].lineno - 1]).rstrip() + "\n"


def other_code(store: Store, job: Job) -> str:
    """What differs from the code of earlier calls of this name, for a person; '' if there were none, or their
    records are damaged: that holds up no calls of today."""
    try:
        return _other_code(store, job)
    except (HostlerError, OSError, EOFError, ValueError, tarfile.TarError, zlib.error):
        return ""


def _other_code(store: Store, job: Job) -> str:
    own = _CODE.sub("", job.name)
    before = [name for name in sweeps.names(store) if _CODE.sub("", name) == own and name != job.name]
    if not before:
        return ""
    earlier = sweeps.load(store, max(before, key=lambda name: sweeps.last_submitted(store, name))).source
    if bool(earlier.function) != bool(job.source.function):
        return ""  # another function of the same name
    return changes.line(store, earlier, job.source).replace(FILE, "the function")
