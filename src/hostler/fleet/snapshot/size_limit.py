"""Refuses a tree that is too large to be code, and names what makes it so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from hostler.errors import UsageError
from hostler.fleet.snapshot.ignore import OWN_FILE
from hostler.fleet.snapshot.tree import Tree, TreeNode, shown
from hostler.settings import Sizes

MOST = 0.9  # a child with this share of its folder's weight is named in its place


def check_size(tree: Tree, limits: Sizes) -> None:
    """Refuse a tree over a limit, naming the files and folders that weigh most."""
    if tree.size > limits.snapshot_max:
        rows = heaviest(tree.files, lambda node: node.size)
        named = ", ".join(f"{shown(name)} {in_bytes(size)}" for name, size in rows)
        what = f"the project is {in_bytes(tree.size)}, over {in_bytes(limits.snapshot_max)}; largest: {named}"
    elif len(tree.files) > limits.snapshot_files:
        rows = heaviest(tree.files, lambda node: 1)
        named = ", ".join(f"{shown(name)} {count}" for name, count in rows)
        what = f"the project has {len(tree.files)} files, over {limits.snapshot_files:.0f}; most: {named}"
    else:
        return
    hint = f"name what is not code in {OWN_FILE}, as in .gitignore, and data under `data:`"
    raise UsageError(what, hint=hint)


def heaviest(
    files: Iterable[TreeNode], weigh: Callable[[TreeNode], int], count: int = 5
) -> list[tuple[str, int]]:
    """Largest first; a folder ends in '/', and is gone into where one child is nearly all of it."""
    weight: dict[str, int] = defaultdict(int)
    children: dict[str, set[str]] = defaultdict(set)
    for node in files:
        name, parent = node.name, _parent(node.name)
        weight[name] += weigh(node)
        while name:
            children[parent].add(name)
            if parent:
                weight[parent] += weigh(node)
            name, parent = parent, _parent(parent.rstrip("/"))
    tops = sorted(children[""], key=lambda name: (-weight[name], name))[:count]
    return [(name, weight[name]) for name in (_descend(top, weight, children) for top in tops)]


def in_bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _parent(name: str) -> str:
    head = name.rpartition("/")[0]
    return f"{head}/" if head else ""


def _descend(name: str, weight: dict[str, int], children: dict[str, set[str]]) -> str:
    while name in children:
        child = max(children[name], key=lambda one: weight[one])
        if weight[child] < MOST * weight[name]:
            break
        name = child
    return name
