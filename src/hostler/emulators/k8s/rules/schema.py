"""Whether an object has the form that Kubernetes publishes: the schemas of kubernetes-validate, if installed.

Unknown fields are refused always, as with `fieldValidation=Strict`: a typing error in a manifest is to show.
"""

from __future__ import annotations

import functools
from typing import Any

from hostler.emulators.k8s.api.refusal import Cause, invalid, undecodable
from hostler.emulators.k8s.resources import Resource
from hostler.emulators.k8s.rules.wrong import required
from hostler.emulators.k8s.storage import Obj

VERSION = "1.36"


def check(resource: Resource, thing: Obj) -> None:
    validator = _validator(resource.kind.lower(), resource.group.partition(".")[0], resource.version)
    if validator is None:
        return
    found = sorted(
        validator.iter_errors(thing), key=lambda error: [str(word) for word in error.absolute_path]
    )
    strange = [error for error in found if error.validator != "required"]
    if strange:
        raise undecodable(resource, _words(strange[0]))
    if found:
        raise invalid(resource, str(thing["metadata"].get("name", "")), _missing(found))


def _missing(errors: list[Any]) -> list[Cause]:
    found = []
    for error in errors:
        at = _path(error)
        names = [word for word in error.validator_value if word not in error.instance]
        found += [required(f"{at}.{word}".lstrip(".")) for word in names]
    return list(dict.fromkeys(found))


def _path(error: Any) -> str:
    words = [f"[{word}]" if isinstance(word, int) else f".{word}" for word in error.absolute_path]
    return "".join(words).lstrip(".")


def _words(error: Any) -> str:
    path = _path(error)
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        strange = sorted(set(error.instance) - set(known))
        fields = [f'unknown field "{path}.{word}"'.replace('".', '"') for word in strange]
        return f"strict decoding error: {', '.join(fields)}"
    return f"json: cannot unmarshal {path or 'the object'}: {error.message}"


@functools.cache
def _validator(kind: str, group: str, version: str) -> Any:
    try:
        from jsonschema import Draft202012Validator
        from kubernetes_validate import utils
    except ImportError:
        return None
    folder = f"kubernetes-json-schema/v{_release(utils)}-local-strict"
    name = f"{kind}-{group}-{version}.json" if group else f"{kind}-{version}.json"
    schema = utils.schema_contents(f"{folder}/{name}", VERSION)
    return Draft202012Validator(schema, registry=_registry(folder))


def _release(utils: Any) -> str:
    known = [version for version in utils.all_versions() if utils.major_minor(version) == VERSION]
    return str(known[-1] if known else utils.latest_version())


@functools.cache
def _registry(folder: str) -> Any:
    from kubernetes_validate import utils
    from referencing import Registry, Resource

    definitions = Resource.from_contents(utils.schema_contents(f"{folder}/_definitions.json", VERSION))
    return definitions @ Registry()
