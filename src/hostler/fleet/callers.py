"""Programs that call functions elsewhere: what only calls is no code of these calls.

A list of values that grows, or a second program beside the first, leaves a function and what it imports as
they were, so that its results are found.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hostler.fleet.function import FILE, kept
from hostler.fleet.snapshot import changes
from hostler.fleet.snapshot.snapshot import tree_of
from hostler.fleet.snapshot.tree import Tree
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store

_CODE = re.compile(r"-[0-9a-f]{8}$")  # the end of the name of calls, which tells their code


def programs(root: Path, own: str) -> list[str]:
    """Python files of a project that make an Executor, that no other file imports or names, and that the
    function, which is in `own`, is not in."""
    names = [node.name for node in tree_of(root, names=True).files if node.name.endswith(".py")]
    texts = {name: text for name in names if (text := _text(root / name))}
    calling = [name for name, text in texts.items() if "hostler" in text and "Executor(" in text]
    return [
        name
        for name in calling
        if name != own and not any(_uses(text, name) for other, text in texts.items() if other != name)
    ]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:  # gone, or not ours to read
        return ""


def _uses(text: str, name: str) -> bool:
    """Whether some code may import the file, or start it."""
    stem = re.escape(Path(name).stem)
    imported = rf"^[ \t]*(?:import|from)\b[^\n(]*(?:\([^)]*)?\b{stem}\b"
    return bool(re.search(rf"{imported}|['\"][^'\"\n]*\b{stem}(?:\.py)?['\"]", text, re.MULTILINE))


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
    """What differs from the code of earlier calls of this name; '' if there were none."""
    own = _CODE.sub("", job.name)
    before = [name for name in sweeps.names(store) if _CODE.sub("", name) == own and name != job.name]
    if not before:
        return ""
    earlier = sweeps.load(store, max(before, key=lambda name: sweeps.last_submitted(store, name))).source
    if bool(earlier.function) != bool(job.source.function):
        return ""  # another function of the same name
    return changes.line(store, earlier, job.source).replace(FILE, "the function")
