"""`add_argument` calls to options: of argparse, and of parsers that are built on it. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hostler.spec.parsers.option import ONE_VALUE, Option
from hostler.spec.parsers.sources import ScriptSource, functions
from hostler.spec.parsers.subcommands import left_out
from hostler.spec.parsers.values import UNKNOWN, calls, constant, keywords, last_name, reader
from hostler.spec.style import Form

ADD = "add_argument"
# Methods of a parser or group that neither hand it to others nor let unknown options through.
_OWN = frozenset(
    {ADD, "add_argument_group", "add_mutually_exclusive_group", "parse_args", "set_defaults", "get_default"}
    | {"print_help", "print_usage", "format_help", "error", "exit", "description", "epilog", "prog"}
)
_COUNTS: Mapping[object, tuple[int, int | None]] = {None: (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}
_GROUPS = ("ArgumentParser", "add_argument_group", "add_mutually_exclusive_group")


def options(found: Iterable[ScriptSource], words: Sequence[str] = ()) -> Iterator[Option]:
    """Options of every call; `words` of the command choose among sub-commands."""
    found = tuple(found)
    known, others = functions(found), left_out(found, words)
    for source in found:
        aliases = _aliases(source)
        for call in calls(source.nodes()):
            is_add = last_name(call.func) == ADD or (
                isinstance(call.func, ast.Name) and call.func.id in aliases
            )
            if is_add and call not in others:
                option = _option(call, source, known)
                if option:
                    yield option


def is_closed(found: Iterable[ScriptSource]) -> bool:
    """Whether every option is seen, and an unknown one is refused: one parser, that nobody else gets."""
    found = tuple(found)
    nodes = [(source, node) for source in found for node in source.nodes()]
    made = [n for _, n in nodes if isinstance(n, ast.Call) and last_name(n.func) == "ArgumentParser"]
    if len(made) != 1 or any(word.arg in (None, "parents") for word in made[0].keywords):
        return False
    known = set(functions(found))
    parsers = _bound(nodes)
    inside = _inside(nodes)
    for source, node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("parse_known_args", "add_subparsers"):
            return False
        if isinstance(node, ast.Attribute) and _is_parser(node.value, parsers) and node.attr not in _OWN:
            return False
        if isinstance(node, ast.Call) and last_name(node.func) == ADD and not _is_plain(node, source):
            return False
        if isinstance(node, ast.Name) and node.id in parsers and isinstance(node.ctx, ast.Load):
            above = inside.get(node)
            handed = isinstance(above, ast.Call) and last_name(above.func) in known
            if not (handed or isinstance(above, (ast.Attribute, ast.Return))):
                return False
    return any(isinstance(n, ast.Attribute) and n.attr == "parse_args" for _, n in nodes)


def _bound(nodes: list[tuple[ScriptSource, ast.AST]]) -> set[str]:
    """Names of parsers and groups, and of parameters that get them by the same name."""
    return {
        target.id
        for _, node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        and last_name(node.value.func) in _GROUPS
        for target in node.targets
        if isinstance(target, ast.Name)
    }  # fmt: skip


def _inside(nodes: list[tuple[ScriptSource, ast.AST]]) -> dict[ast.AST, ast.AST]:
    return {child: node for _, node in nodes for child in ast.iter_child_nodes(node)}


def _is_parser(node: ast.AST, parsers: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in parsers


def _is_plain(call: ast.Call, source: ScriptSource) -> bool:
    return all(isinstance(constant(word, source.names), str) for word in call.args) and bool(call.args)


def _aliases(source: ScriptSource) -> set[str]:
    """Names bound to some parser's add_argument."""
    return {
        target.id
        for node in source.nodes()
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == ADD
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _option(call: ast.Call, source: ScriptSource, known: Mapping[str, ast.AST]) -> Option | None:
    names = [constant(word, source.names) for word in call.args]
    if not names or not all(isinstance(name, str) and name.startswith("-") for name in names):
        return None
    given = keywords(call)
    names.sort(key=lambda name: not name.startswith("--"))
    dest = constant(given.get("dest"), source.names) if given else None
    if dest is UNKNOWN:
        return None
    bare = Option(
        tuple(names),
        str(dest) if dest else names[0].lstrip("-").replace("-", "_"),
        Form(option=names[0]),
        where=f"{source.shown}:{call.lineno}",
    )
    return bare if given is None else _declared(bare, given, source, known)


def _declared(
    bare: Option, given: Mapping[str, ast.AST], source: ScriptSource, known: Mapping[str, ast.AST]
) -> Option:
    """The option with the form that `action`, `nargs` and `type` make."""
    action = given.get("action")
    word = constant(action, source.names)
    if last_name(action) == "BooleanOptionalAction":
        return _on_off(bare)
    if word in ("store_true", "store_false"):
        return _switch(bare, word == "store_true", word, constant(given.get("default"), source.names))
    if word == "store_const" and isinstance(value := constant(given.get("const"), source.names), bool):
        return _switch(bare, value, "store_const", constant(given.get("default"), source.names))
    if word == "count":
        return _switch(bare, True, "count", None)
    nargs = constant(given.get("nargs"), source.names)
    if word not in (None, "store", "append", "extend") or nargs is UNKNOWN:
        return bare
    return _valued(bare, word or "store", nargs, given, source, known)


def _on_off(bare: Option) -> Option:
    long = next((name for name in bare.names if name.startswith("--")), "")
    if not long:
        return bare
    off = f"--no-{long[2:]}"
    form = replace(bare.form, booleans="no-prefix", true=(long,), false=(off,))
    return replace(
        bare,
        names=(*bare.names, off),
        form=form,
        accepts=frozenset({"no-prefix", "bare"}),
        how="with BooleanOptionalAction",
    )


def _switch(bare: Option, value: bool, action: str, default: object) -> Option:
    word = (bare.form.option,)
    form = replace(bare.form, booleans="bare", true=word if value else (), false=() if value else word)
    stuck = value if default is value else None
    return replace(bare, form=form, accepts=frozenset({"bare"}), how=f"as {action}", stuck=stuck)


def _valued(
    bare: Option,
    action: str,
    nargs: object,
    given: Mapping[str, ast.AST],
    source: ScriptSource,
    known: Mapping[str, ast.AST],
) -> Option:
    option = bare.form.option
    reads = reader(given.get("type"), known)
    choices = constant(given.get("choices"), source.names)
    if isinstance(choices, list) and "True" in choices and "true" not in choices:
        reads = replace(reads, true="True", false="False")
    true = None if reads.true is None else (option, reads.true)
    false = None if reads.false is None else ((option, reads.false) if reads.false else (f"{option}=",))
    form = replace(bare.form, booleans="value", true=true, false=false, literal=reads.literal)
    counts = (nargs, nargs) if isinstance(nargs, int) else _COUNTS.get(nargs)
    bare = replace(bare, counts=counts, nests=reads.literal or reads.lists == "json")
    if action == "append":
        return replace(
            bare,
            form=replace(form, lists="repeat"),
            accepts=ONE_VALUE | {"repeat"},
            how="with action='append'",
        )
    several = nargs in ("+", "*") or (isinstance(nargs, int) and nargs > 1)
    if several:
        accepts = ONE_VALUE | {"spaces"} | ({"repeat"} if action == "extend" else set())
        return replace(bare, form=replace(form, lists="spaces"), accepts=accepts, how=f"with nargs={nargs!r}")
    if action == "extend":
        return bare
    accepts = ONE_VALUE | ({"bare"} if nargs == "?" else set())
    return replace(bare, form=replace(form, lists=reads.lists), accepts=accepts, how="with one value")
