"""Options of click's decorators, and of the signatures that typer makes commands of. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hostler.spec.parsers.option import ONE_NUMBER, ONE_VALUE, Option
from hostler.spec.parsers.sources import ScriptSource, classes, functions
from hostler.spec.parsers.values import UNKNOWN, calls, constant, keywords, last_name, reader
from hostler.spec.style import Form

_LISTS = frozenset({"List", "list", "Sequence", "Set", "set"})
_TUPLES = frozenset({"Tuple", "tuple"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def options(found: Iterable[ScriptSource], words: Sequence[str] = ()) -> Iterator[Option]:
    """Options of every `click.option(…)`, and what `@click.argument(…)` takes by its place. `words` of the
    command choose among commands."""
    found = tuple(found)
    known, others = {**functions(found), **classes(found)}, _left_out(found, words)
    for source in found:
        bare, placed = (_imported_from(source, "click", name) for name in ("option", "argument"))
        for call in calls(source.nodes()):
            if call in others:
                continue
            option = None
            if _is_click(call.func, "option", bare):
                option = _of_decorator(call, source, known)
            elif _is_click(call.func, "argument", placed):
                option = _of_argument(call, source)
            if option:
                yield option


def _left_out(found: Iterable[ScriptSource], words: Sequence[str]) -> set[ast.AST]:
    """Functions of commands that these words do not choose, and what decorates them."""
    names = {
        node: _command_names(node)
        for source in found
        for node in source.nodes()
        if isinstance(node, _FUNCTIONS) and any(map(_is_command, node.decorator_list))
    }
    chosen = next((word for word in words if any(word in own for own in names.values())), None)
    others = {node for node, own in names.items() if chosen is not None and chosen not in own}
    return {part for node in others for part in (node, *calls(list(node.decorator_list)))}


def _is_command(decorator: ast.expr) -> bool:
    return last_name(decorator.func if isinstance(decorator, ast.Call) else decorator) == "command"


def _command_names(function: _Function) -> set[str]:
    """Names of a command: as its decorator says, or after its function."""
    for call in calls(list(function.decorator_list)):
        if last_name(call.func) == "command":
            name = constant(call.args[0] if call.args else (keywords(call) or {}).get("name"), {})
            if isinstance(name, str):
                return {name}
    name = function.name.lower()
    short = re.sub(r"_(?:command|cmd|group|grp)$", "", name)
    return {word.replace("_", "-") for word in (name, short)} | {name}


def _of_argument(call: ast.Call, source: ScriptSource) -> Option | None:
    name = constant(call.args[0], source.names) if call.args else None
    where = f"{source.shown}:{call.lineno}"
    return Option((), name.replace("-", "_").lower(), where=where) if isinstance(name, str) else None


def typer_options(found: Iterable[ScriptSource], words: Sequence[str] = ()) -> Iterator[Option]:
    """Options of every function that typer makes a command of, if `words` do not choose another."""
    found = tuple(found)
    known, run, others = functions(found), set[str](), _left_out(found, words)
    for source in found:
        for call in calls(source.nodes()):
            is_run = last_name(call.func) == "run" and _root(call.func) == "typer"
            run |= {last_name(word) for word in call.args} if is_run else set()
    for source in found:
        for node in source.nodes():
            if not isinstance(node, _FUNCTIONS) or node in others:
                continue
            decorated = any(
                last_name(call.func) in ("command", "callback") for call in calls(list(node.decorator_list))
            )
            if decorated or (node.name in run and known.get(node.name) is node):
                yield from _of_signature(node, source)


def _imported_from(source: ScriptSource, module: str, name: str) -> set[str]:
    """Local names of a function of a module where it was imported by itself."""
    return {
        alias.asname or alias.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
        if alias.name == name
    }


def _is_click(func: ast.AST, name: str, bare: set[str]) -> bool:
    if isinstance(func, ast.Name):
        return func.id in bare
    return last_name(func) == name and _root(func) == "click"


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return last_name(node)


def _of_decorator(call: ast.Call, source: ScriptSource, known: Mapping[str, ast.AST]) -> Option | None:
    words = [constant(word, source.names) for word in call.args]
    nodes = keywords(call)
    if not words or not all(isinstance(word, str) for word in words):
        return None
    bare, off = _named([str(word) for word in words], f"{source.shown}:{call.lineno}")
    if bare is None:
        return None
    if nodes is None or "cls" in nodes:
        return bare
    table = {name: constant(node, source.names) for name, node in nodes.items()}
    read = _read_by(nodes, known)
    if read and not off and table.get("multiple") is None and table.get("nargs") is None:
        form = replace(bare.form, booleans="value", lists=read)
        return replace(bare, form=form, accepts=ONE_VALUE, how="with one value", counts=(1, 1))
    return bare if "callback" in nodes else _shaped(bare, off, table, nodes.get("type"))


def _read_by(nodes: Mapping[str, ast.AST], known: Mapping[str, ast.AST]) -> str:
    """How a callback, or a type of the script's own, makes a list of one word; '' if it makes none."""
    for node in filter(None, (nodes.get("callback"), nodes.get("type"))):
        if lists := reader(node.func if isinstance(node, ast.Call) else node, known).lists:
            return lists
    return ""


def _named(words: list[str], where: str, dest: str = "") -> tuple[Option | None, str]:
    """The option that these declarations name, and its second name, `--no-x`."""
    names = [part.strip() for word in words if word[:1] in "- " for part in [word.partition("/")[0]]]
    offs = [word.partition("/")[2].strip() for word in words if word[:1] in "- " and "/" in word]
    own = next((word for word in words if word[:1] not in "- "), dest)
    names = sorted((name for name in names if name), key=lambda name: not name.startswith("--"))
    offs = sorted((name for name in offs if name), key=lambda name: not name.startswith("--"))
    if not names and not offs:
        return None, ""
    dest = own or (names or offs)[0].lstrip("-").replace("-", "_").lower()
    option = names[0] if names else ""
    return Option((*names, *offs), dest, Form(option=option), where=where), offs[0] if offs else ""


def _shaped(bare: Option, off: str, table: Mapping[str, object], kind: ast.AST | None) -> Option:
    """The option with the form that its keywords make."""
    if any(table.get(name) is UNKNOWN for name in ("is_flag", "flag_value", "multiple", "nargs", "count")):
        return bare
    if off:
        return _pair(bare, off)
    if table.get("flag_value") is not None:
        return bare  # one of several that share a key
    if table.get("is_flag") or table.get("count"):
        default = table.get("default")
        return _stuck(bare) if default is True else bare if default not in (None, False, 0) else _flag(bare)
    several = table.get("nargs") or (len(kind.elts) if isinstance(kind, ast.Tuple) else 1)
    form = replace(bare.form, booleans="value")
    one = ONE_NUMBER if last_name(kind) in ("int", "float", "INT", "FLOAT") else ONE_VALUE
    if table.get("tuple") or (isinstance(kind, ast.Call) and last_name(kind.func) == "Tuple"):
        several = 2  # or more
    elif isinstance(several, int):
        bare = replace(bare, counts=(several, several))
    if table.get("multiple"):
        form = replace(form, lists="repeat")
        return replace(bare, form=form, accepts=one | {"repeat"}, how="with multiple=True")
    if isinstance(several, int) and several > 1:
        form = replace(form, lists="spaces")
        return replace(
            bare,
            form=form,
            accepts=frozenset({"spaces"}),
            how=f"with {several} values" if bare.counts else "as a tuple",
        )
    return replace(bare, form=form, accepts=one, how="with one value")


def _pair(bare: Option, off: str) -> Option:
    on = bare.form.option
    form = replace(bare.form, booleans="no-prefix", true=(on,) if on else (), false=(off,))
    how = f"as {on}/{off}" if on else f"as a flag {off}"
    return replace(bare, form=form, accepts=frozenset({"no-prefix", "bare"}), how=how)


def _stuck(bare: Option) -> Option:
    """A flag that is true without being given, and has no other name that makes it false."""
    form = replace(bare.form, booleans="bare", true=(), false=())
    return replace(bare, form=form, accepts=frozenset({"bare"}), how="as a flag", stuck=True)


def _flag(bare: Option) -> Option:
    form = replace(bare.form, booleans="bare", true=(bare.form.option,), false=())
    return replace(bare, form=form, accepts=frozenset({"bare"}), how="as a flag")


def _of_signature(function: _Function, source: ScriptSource) -> Iterator[Option]:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.AST | None] = [None] * (len(plain) - len(arguments.defaults)) + list(
        arguments.defaults
    )
    pairs = [
        *zip(plain, defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        option = _of_parameter(argument, default, source)
        if option:
            yield option


def _of_parameter(argument: ast.arg, default: ast.AST | None, source: ScriptSource) -> Option | None:
    kind, call = _annotated(argument.annotation)
    if isinstance(default, ast.Call) and last_name(default.func) in ("Option", "Argument"):
        call, default = default, default.args[0] if default.args else ast.Constant(None)
        declared = call.args[1:]
    else:
        declared = call.args if call else []
    is_context = last_name(argument.annotation) in ("Context", "CallbackParam")
    if (default is None and call is None) or (call is not None and last_name(call.func) == "Argument"):
        return None if is_context else Option((), argument.arg, where=f"{source.shown}:{argument.lineno}")
    if call is not None and last_name(call.func) != "Option":
        return None
    words = [constant(word, source.names) for word in declared]
    if not all(isinstance(word, str) for word in words):
        return None
    flags = [str(word) for word in words if str(word)[:1] in "- "]
    names = flags or [f"--{argument.arg.replace('_', '-')}"]
    where = f"{source.shown}:{argument.lineno}"
    bare, off = _named(names, where, argument.arg)
    if bare is None:
        return None
    nodes = keywords(call) if call else {}
    if nodes is None or "parser" in nodes or "click_type" in nodes or "callback" in nodes:
        return bare
    if kind == "bool" and not flags:
        off = f"--no-{names[0][2:]}"
        bare = replace(bare, names=(*bare.names, off))
    table = {
        "is_flag": kind == "bool" and not off,
        "multiple": kind == "list",
        "tuple": kind == "tuple",
    }
    if kind == "bool" and not off:
        table["default"] = constant(default, source.names)
    return _shaped(bare, off, table, None) if kind else replace(bare, form=bare.form)


def _annotated(node: ast.AST | None) -> tuple[str, ast.Call | None]:
    """(bool | list | tuple | value, the typer.Option of an Annotated); '' where it cannot be told."""
    if node is None:
        return "", None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _annotated(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return "", None
    if isinstance(node, ast.Subscript):
        return _subscript(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [side for side in (node.left, node.right) if not _is_none(side)]
        return _annotated(sides[0]) if len(sides) == 1 else ("", None)
    name = last_name(node)
    if name in _LISTS:
        return "list", None
    return ("bool" if name == "bool" else "value" if name else ""), None


def _subscript(node: ast.Subscript) -> tuple[str, ast.Call | None]:
    outer, inner = last_name(node.value), node.slice
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if outer == "Annotated":
        call = next((part for part in calls(list(parts[1:]))), None)
        return _annotated(parts[0])[0], call
    if outer in ("Optional", "Union"):
        sides = [part for part in parts if not _is_none(part)]
        return _annotated(sides[0]) if len(sides) == 1 else ("", None)
    if outer in _LISTS:
        return "list", None
    return ("tuple" if outer in _TUPLES else "value" if outer == "Literal" else ""), None


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
