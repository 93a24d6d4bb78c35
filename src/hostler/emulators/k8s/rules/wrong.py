"""Errors of fields, in the words of the API."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hostler.emulators.k8s.api.refusal import Cause


def required(field: str, why: str = "") -> Cause:
    return Cause(field, f"Required value: {why}" if why else "Required value", "FieldValueRequired")


def invalid(field: str, value: object, why: str) -> Cause:
    return Cause(field, f"Invalid value: {json.dumps(value)}: {why}", "FieldValueInvalid")


def unsupported(field: str, value: object, known: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{word}"' for word in known)
    text = f"Unsupported value: {json.dumps(value)}: supported values: {listed}"
    return Cause(field, text, "FieldValueNotSupported")


def absent(field: str, value: object) -> Cause:
    return Cause(field, f"Not found: {json.dumps(value)}", "FieldValueNotFound")


def twice(field: str, value: object) -> Cause:
    return Cause(field, f"Duplicate value: {json.dumps(value)}", "FieldValueDuplicate")


def forbidden(field: str, why: str) -> Cause:
    return Cause(field, f"Forbidden: {why}", "FieldValueForbidden")


def among(field: str, value: object, known: Sequence[str]) -> list[Cause]:
    """Nothing wrong if it is one of them, or not given."""
    return [] if value is None or value in known else [unsupported(field, value, known)]
