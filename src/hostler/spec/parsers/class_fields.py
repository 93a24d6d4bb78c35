"""Options that libraries make of the fields of a class: tyro and Tap. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hostler.spec.parsers.option import Option
from hostler.spec.parsers.sources import ScriptSource, classes, functions
from hostler.spec.parsers.values import calls, constant, last_name
from hostler.spec.style import Form

DEEPEST = 4  # classes in classes
_LISTS = frozenset({"List", "list", "Tuple", "tuple", "Sequence", "Set", "set", "Collection"})
_Class = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def tyro_options(found: Iterable[ScriptSource]) -> Iterator[Option]:
    """Options of every class or function that `tyro.cli(…)` is given; a class in it has options with dots."""
    found = tuple(found)
    known: dict[str, ast.AST] = {**functions(found), **classes(found)}
    for source in found:
        for call in calls(source.nodes()):
            node = known.get(last_name(call.args[0])) if call.args and last_name(call.func) == "cli" else None
            if isinstance(node, _Class):
                yield from _tyro(node, "", known, source)


def tap_options(found: Iterable[ScriptSource]) -> Iterator[Option]:
    """Options of every class that is a Tap. A boolean that is true by default is made false by its option."""
    for source in found:
        for node in source.nodes():
            if isinstance(node, ast.ClassDef) and any(last_name(base) == "Tap" for base in node.bases):
                for name, kind, default in _fields(node):
                    yield _of_tap(name, kind, default, f"{source.shown}:{kind.lineno}")


def _tyro(node: _Class, prefix: str, known: Mapping[str, ast.AST], source: ScriptSource) -> Iterator[Option]:
    for name, kind, default in _fields(node):
        inner = known.get(last_name(kind))
        if isinstance(inner, ast.ClassDef) and prefix.count(".") < DEEPEST:
            yield from _tyro(inner, f"{prefix}{name}.", known, source)
            continue
        option, off = f"--{prefix}{name}", f"--{prefix}no-{name}"
        bare = Option((option,), prefix + name, Form(option=option), where=f"{source.shown}:{kind.lineno}")
        if last_name(kind) == "bool" and default is not None:
            form = Form("no-prefix", "spaces", option=option, true=(option,), false=(off,))
            yield replace(
                bare,
                names=(option, off),
                form=form,
                accepts=frozenset({"no-prefix", "bare"}),
                how="as a bool of tyro",
            )
        else:
            form = Form("value", "spaces", option=option, true=(option, "True"), false=(option, "False"))
            yield replace(bare, form=form)


def _of_tap(name: str, kind: ast.expr, default: ast.expr | None, where: str) -> Option:
    option = f"--{name}"
    bare = Option((option,), name, Form(option=option), where=where)
    if last_name(kind) == "bool":
        is_true = constant(default, {}) is True
        form = Form(
            "bare", option=option, true=() if is_true else (option,), false=(option,) if is_true else ()
        )
        return replace(bare, form=form, accepts=frozenset({"bare"}), how="as a bool of Tap")
    is_list = isinstance(kind, ast.Subscript) and last_name(kind.value) in _LISTS
    return replace(bare, form=Form("value", "spaces" if is_list else "", option=option))


def _fields(node: _Class) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
    """Names, annotations and defaults; without those that an annotation does not tell."""
    if isinstance(node, ast.ClassDef):
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                yield line.target.id, line.annotation, line.value
        return
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
    pairs = zip(plain, [*defaults, *node.args.defaults], strict=True)
    for argument, default in [*pairs, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]:
        if argument.annotation is not None:
            yield argument.arg, argument.annotation, default
