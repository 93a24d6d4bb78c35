"""Recognises another tool's file by its shape and reads it as one of ours."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hostler.spec.files.yaml12 import Document
from hostler.spec.formats import cloudl, starter, wandb
from hostler.spec.formats.foreign import Foreign

TOOLS: tuple[ModuleType, ...] = (cloudl, starter, wandb)


def is_foreign(value: Any) -> bool:
    return any(tool.is_it(value) for tool in TOOLS)


def recognise(document: Document, stem: str) -> Foreign | None:
    """None if it is not another tool's; `stem` is its name where the file gives none."""
    for tool in TOOLS:
        if tool.is_it(document.value):
            found: Foreign = tool.read(document, stem)
            return found
    return None


def as_ours(document: Document, stem: str) -> tuple[Document, Foreign | None]:
    """The document as a sweep file of ours, with the lines of its own; what another tool's file became."""
    found = recognise(document, stem)
    return (document if found is None else found.document(document)), found
