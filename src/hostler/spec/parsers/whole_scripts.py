"""Libraries that read every option of a script one way, whether it is seen or not. Pure.

absl (--key=value), Fire and configurators (--key=VALUE as Python literals), HfArgumentParser (--key true,
--key a b), LightningCLI and jsonargparse (--key true, --key '[1, 2]'), tyro (--key, --no-key, --key a b).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path

from hostler.frozen import dataclass
from hostler.spec.parsers.option import ONE_NUMBER, ONE_VALUE, Option
from hostler.spec.parsers.sources import ScriptSource
from hostler.spec.parsers.values import calls, constant, last_name
from hostler.spec.style import Form

_TIED = Form(assign="equals")
_LITERALS = Form(booleans="value", lists="json", assign="equals", literal=True)
_HF = Form(booleans="value", lists="spaces")
_TYRO = Form(booleans="no-prefix", lists="spaces")
_YAML = Form(booleans="value", lists="json")

_LISTS = {"list": "comma", "spaceseplist": "joined", "multi": "repeat"}
_SINGLE = ("string", "enum", "integer", "float")


@dataclass(frozen=True)
class Whole:
    """`form` of all options; `tied`: only --key=value is understood."""

    form: Form = field(default_factory=Form)
    tied: bool = False


def whole(found: Iterable[ScriptSource], modules: set[str]) -> Whole:
    """The one way in which a script reads its options; the usual form where it has none, or several."""
    found = tuple(found)
    ways = {way for source in found for call in calls(source.nodes()) for way in _ways(call, source, modules)}
    return next(iter(ways)) if len(ways) == 1 else Whole()


def absl_options(found: Iterable[ScriptSource]) -> Iterator[Option]:
    """Flags that `DEFINE_…` calls declare."""
    for source in found:
        for call in calls(source.nodes()):
            kind = last_name(call.func)
            name = constant(call.args[0], source.names) if call.args else None
            if kind.startswith("DEFINE_") and isinstance(name, str):
                yield _flag(name, kind.removeprefix("DEFINE_"), f"{source.shown}:{call.lineno}")


def _flag(name: str, kind: str, where: str) -> Option:
    option = f"--{name}"
    if kind in ("bool", "boolean"):
        form = Form("value", assign="equals", option=option)
        return Option((option,), name, form, frozenset({"value", "bare"}), where, "with DEFINE_bool")
    lists = _LISTS.get(kind.partition("_")[0], "")
    form = Form("value", lists, "equals", option)
    if kind in ("integer", "float"):
        form = replace(form, true=(f"{option}=1",), false=(f"{option}=0",))
    one = ONE_NUMBER if kind in ("integer", "float") else ONE_VALUE
    accepts = frozenset({"value", lists}) if lists else one if kind in _SINGLE else None
    counts = (1, 1) if kind in _SINGLE else None
    return Option((option,), name, form, accepts, where, f"with DEFINE_{kind}", counts=counts)


def _ways(call: ast.Call, source: ScriptSource, modules: set[str]) -> Iterator[Whole]:
    name = last_name(call.func)
    if name.startswith("DEFINE_") and modules & {"absl", "tensorflow", "ml_collections"}:
        yield Whole(_TIED)
    elif name == "Fire" and "fire" in modules:
        yield Whole(_LITERALS)
    elif name == "HfArgumentParser" and modules & {"transformers", "trl"}:
        yield Whole(_HF)
    elif name in ("LightningCLI", "CLI", "auto_cli") and modules & {
        "lightning",
        "pytorch_lightning",
        "jsonargparse",
    }:
        yield Whole(_YAML)
    elif name == "cli" and "tyro" in modules:
        yield Whole(_TYRO)
    elif name == "exec" and call.args and _configures(call.args[0], source):
        yield Whole(_LITERALS, tied=True)


def _configures(node: ast.AST, source: ScriptSource) -> bool:
    """Whether this is the text of a file that reads --key=value from sys.argv as Python literals."""
    opened = next((c for c in calls(list(ast.walk(node))) if last_name(c.func) == "open"), None)
    path = _path(opened.args[0], source) if opened and opened.args else None
    if path is None:
        return False
    for place in (source.folder, *list(source.folder.parents)[:2]):
        try:
            text = (place / path).read_text("utf-8", "replace")
        except (OSError, ValueError):
            continue
        return "sys.argv" in text and "literal_eval" in text and "'='" in text.replace('"', "'")
    return False


def _path(node: ast.AST, source: ScriptSource) -> Path | None:
    """A constant path, or an `os.path.join` of constants."""
    words = node.args if isinstance(node, ast.Call) and last_name(node.func) == "join" else [node]
    parts = [constant(word, source.names) for word in words]
    return Path(*parts) if parts and all(isinstance(part, str) for part in parts) else None


def reads_pairs(found: Iterable[ScriptSource]) -> bool:
    """Whether OmegaConf reads the command line."""
    return any(
        last_name(call.func) == "from_cli" and not call.args and not call.keywords
        for source in found
        for call in calls(source.nodes())
    )


def is_hydra(found: Iterable[ScriptSource]) -> bool:
    """Whether the script itself, the first source, has a function that Hydra starts."""
    script = next(iter(found))
    mains = {"hydra.main", *_imported_mains(script)}
    decorators = (
        decorator
        for node in script.nodes()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for decorator in node.decorator_list
    )
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) in mains for node in decorators)


def _imported_mains(script: ScriptSource) -> set[str]:
    """Local names of Hydra's `main` where it was imported by itself."""
    return {
        alias.asname or alias.name
        for node in script.nodes()
        if isinstance(node, ast.ImportFrom) and node.module == "hydra"
        for alias in node.names
        if alias.name == "main"
    }
