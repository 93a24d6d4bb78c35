"""`add_argument` calls to options: of argparse, of parsers that are built on it, and of optparse. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hostler.spec.parsers.option import ONE_NUMBER, ONE_VALUE, Option
from hostler.spec.parsers.sources import ScriptSource, classes, functions, imported
from hostler.spec.parsers.subcommands import left_out
from hostler.spec.parsers.values import (
    UNKNOWN,
    calls,
    constant,
    joined_text,
    keywords,
    last_name,
    reader,
    words_of_booleans,
)
from hostler.spec.style import Form

ADD = "add_argument"
ADD_OF_OPTPARSE = "add_option"
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
    known, others = {**functions(found), **_own_actions(found)}, left_out(found, words)
    defaults = _set_defaults(found, others)
    adding = {ADD, ADD_OF_OPTPARSE} if "optparse" in imported(found) else {ADD}
    for source in found:
        aliases, turns = _aliases(source), _turns(source)
        for call in calls(source.nodes()):
            is_add = last_name(call.func) in adding or (
                isinstance(call.func, ast.Name) and call.func.id in aliases
            )
            for bound in turns.get(call, [{}]) if is_add and call not in others else ():
                name_of = joined_text if bound else constant
                inside = replace(source, names={**source.names, **bound})
                names = [name_of(word, inside.names) for word in call.args]
                option = _option(call, names, inside, known)
                if option:
                    yield _with_default(option, defaults.get(option.dest))


def _own_actions(found: Iterable[ScriptSource]) -> dict[str, ast.ClassDef]:
    """Classes that a script hands to `action=`."""
    return {name: body for name, body in classes(found).items() if is_action(body)}


def is_action(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(last_name(base).endswith("Action") for base in node.bases)


def adds_to_earlier(action: ast.ClassDef) -> bool:
    """Whether it looks at what the option was given before: then it may be given several times."""
    of_argparse = any(last_name(base) in ("_AppendAction", "_ExtendAction") for base in action.bases)
    return of_argparse or any(
        last_name(call.func) in ("getattr", "vars") for call in calls(list(ast.walk(action)))
    )


def _turns(source: ScriptSource) -> dict[ast.Call, list[dict[str, object]]]:
    """Calls in loops over constants, and what the loop's names are in each turn. A call under an `if` in the
    loop is not made in every turn."""
    turns: dict[ast.Call, list[dict[str, object]]] = {}
    for loop in source.nodes():
        if not isinstance(loop, ast.For):
            continue
        items = constant(loop.iter, source.names)
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if not isinstance(items, list) or len(names) != len(targets):
            continue
        rows = [item if isinstance(loop.target, ast.Tuple) else [item] for item in items]
        if all(isinstance(row, list) and len(row) == len(names) for row in rows):
            bound = [dict(zip(names, row, strict=True)) for row in rows]
            lines = [line for line in loop.body if isinstance(line, (ast.Expr, ast.Assign))]
            turns |= {call: bound for line in lines for call in calls(list(ast.walk(line)))}
    return turns


def _set_defaults(found: Iterable[ScriptSource], others: set[ast.Call]) -> dict[str, object]:
    """Defaults that `set_defaults(amp=True)` gives, by key."""
    return {
        word.arg: constant(word.value, source.names)
        for source in found
        for call in calls(source.nodes())
        if last_name(call.func) == "set_defaults" and call not in others
        for word in call.keywords
        if word.arg
    }


def _with_default(option: Option, default: object) -> Option:
    """A flag that already has the only value that it gives cannot be changed; nor is it stuck without."""
    if not isinstance(default, bool) or option.form.booleans != "bare":
        return option
    gives = bool(option.form.true)
    return replace(option, stuck=default if default is gives else None)


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


def _option(
    call: ast.Call, names: list[Any], source: ScriptSource, known: Mapping[str, ast.AST]
) -> Option | None:
    if len(names) == 1 and isinstance(names[0], str) and names[0].isidentifier():
        return Option((), names[0], where=f"{source.shown}:{call.lineno}")
    if not names or not all(isinstance(name, str) and name.startswith("-") for name in names):
        return None
    nodes = keywords(call)
    names.sort(key=lambda name: not name.startswith("--"))
    dest = constant(nodes.get("dest"), source.names) if nodes else None
    if dest is UNKNOWN:
        return None
    bare = Option(
        tuple(names),
        str(dest) if dest else names[0].lstrip("-").replace("-", "_"),
        Form(option=names[0]),
        where=f"{source.shown}:{call.lineno}",
    )
    return bare if nodes is None else _declared(bare, nodes, source, known)


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
    own = known.get(last_name(action))
    if isinstance(own, ast.ClassDef) and nargs is not UNKNOWN:
        return _by_own_action(bare, own, nargs, {**given, "type": action or own}, source, known)
    if word not in (None, "store", "append", "extend") or nargs is UNKNOWN:
        return bare
    return _valued(bare, word or "store", nargs, given, source, known)


def _by_own_action(
    bare: Option,
    action: ast.ClassDef,
    nargs: object,
    given: Mapping[str, ast.AST],
    source: ScriptSource,
    known: Mapping[str, ast.AST],
) -> Option:
    """The option that a class of the script reads, as a `type=` would; it may do anything else besides."""
    form = _valued(bare, "store", nargs, given, source, known).form
    if form.true is None:
        form = replace(form, booleans="")
    if not form.lists and adds_to_earlier(action):
        form = replace(form, lists="repeat")
    return replace(bare, form=form)


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
    choices, default = (constant(given.get(word), source.names) for word in ("choices", "default"))
    words = words_of_booleans(choices if isinstance(choices, list) else [default])
    if words and reads.true is None:
        reads = replace(reads, true=words[0], false=words[1])
    true = None if reads.true is None else (option, reads.true)
    false = None if reads.false is None else ((option, reads.false) if reads.false else (f"{option}=",))
    form = replace(bare.form, booleans="value", true=true, false=false, literal=reads.literal)
    counts = (nargs, nargs) if isinstance(nargs, int) else _COUNTS.get(nargs)
    bare = replace(bare, counts=counts, nests=reads.literal or reads.lists == "json")
    kind = given.get("type")
    is_number = isinstance(kind, ast.Name) and last_name(kind) in ("int", "float")
    is_number = is_number or constant(kind, source.names) in ("int", "float", "long")  # of optparse
    one = ONE_NUMBER if is_number else ONE_VALUE
    if action == "append":
        return replace(
            bare,
            form=replace(form, lists="repeat"),
            accepts=one | {"repeat"},
            how="with action='append'",
        )
    several = nargs in ("+", "*") or (isinstance(nargs, int) and nargs > 1)
    if several:
        accepts = one | {"spaces"} | ({"repeat"} if action == "extend" else set())
        return replace(bare, form=replace(form, lists="spaces"), accepts=accepts, how=f"with nargs={nargs!r}")
    if action == "extend":
        return bare
    accepts = one | ({"bare"} if nargs == "?" else set())
    return replace(bare, form=replace(form, lists=reads.lists), accepts=accepts, how="with one value")
