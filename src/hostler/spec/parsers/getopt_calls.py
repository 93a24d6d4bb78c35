"""Options of `getopt.getopt(words, "vl:", ["amp", "layers="])`. Pure.

It stops at the first word that it does not expect, and many a script looks at no word after that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hostler.spec.parsers.option import ONE_VALUE, Option
from hostler.spec.parsers.sources import ScriptSource
from hostler.spec.parsers.values import calls, constant, keywords, last_name
from hostler.spec.style import Form

_CALLS = ("getopt", "gnu_getopt")


def options(found: Iterable[ScriptSource]) -> Iterator[Option]:
    for source in found:
        for call in calls(source.nodes()):
            if last_name(call.func) not in _CALLS or len(call.args) < 2:
                continue
            where = f"{source.shown}:{call.lineno}"
            letters = constant(call.args[1], source.names)
            if isinstance(letters, str):
                for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", letters):
                    yield _option(f"-{letter}", bool(colon), where)
            node = call.args[2] if len(call.args) > 2 else (keywords(call) or {}).get("longopts")
            names = constant(node, source.names)
            for name in [names] if isinstance(names, str) else names or ():
                if isinstance(name, str) and name:
                    yield _option(f"--{name.rstrip('=')}", name.endswith("="), where)


def _option(word: str, is_valued: bool, where: str) -> Option:
    bare = Option((word,), word.lstrip("-").replace("-", "_"), Form(option=word), where=where)
    if is_valued:
        form = replace(bare.form, booleans="value")
        accepts = ONE_VALUE | {"repeat"}
        return replace(bare, form=form, accepts=accepts, how="with one value", counts=(1, 1))
    form = replace(bare.form, booleans="bare", true=(word,), false=())
    return replace(bare, form=form, accepts=frozenset({"bare"}), how="as a flag")
