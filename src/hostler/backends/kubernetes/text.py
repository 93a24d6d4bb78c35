"""A manifest as text that `kubectl apply` takes as it is: YAML, one document for each object.

It holds no secret: of what `hostler up` puts into a Secret it says only how to make one by hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import yaml

from hostler.backends.kubernetes.credentials import FILES, KEY
from hostler.backends.kubernetes.manifest import Manifest


class _Dumper(yaml.SafeDumper):
    """Indented as people write it, texts of several lines as they are, nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _as_text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    style = "|" if "\n" in data else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _as_text)


def documents(bodies: Sequence[dict[str, Any]]) -> str:
    return "---\n".join(
        yaml.dump(body, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True) for body in bodies
    )


def of_launch(made: Manifest) -> str:
    lines = ""
    if made.hidden:
        words = " ".join(_by_hand(name, value) for name, value in made.hidden.items())
        place = f"--namespace {space} " if (space := made.job["metadata"].get("namespace")) else ""
        lines = f"# hostler up makes this, too: kubectl create secret generic {made.name} {place}{words}\n"
    return lines + documents([made.job])


def _by_hand(name: str, value: str) -> str:
    """A file of this machine is there as what is in it, under the name that pods look at."""
    return f"--from-file={KEY}={shlex.quote(value)}" if name in FILES else f"--from-literal={name}=…"
