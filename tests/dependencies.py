"""The packages that hostler depends on, as a release names them: checked without a network, or written anew.

`constraints.txt` has the versions that the tests passed with, `sbom.cdx.json` (CycloneDX, in the wheel) the
same with licenses and with who needs whom. `--write` takes both from the environment that runs this; without
it, they must name every package of pyproject.toml in a version that it allows, and agree with each other.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as plain
from packaging.version import Version

ROOT = Path(__file__).parents[1]
OURS = {"test", "frameworks", "gangs-test", "docs", "lint", "all"}  # extras that no user installs


@dataclass(frozen=True)
class Breakage:
    """A release after which code that used the package had to change; its next major may do so again."""

    release: str
    what: str


# Packages that broke their users before. Each needs an upper bound that leaves the next major out, so that a
# person tries that one and lets it in.
BROKE = {
    "click": Breakage("8.2.0", "CliRunner lost mix_stderr; 8.3 read flags' defaults otherwise"),
    "datasets": Breakage("4.0.0", "datasets by a script are not loaded any more; trust_remote_code is gone"),
    "huggingface-hub": Breakage(
        "1.0.0", "httpx in the place of requests: other exceptions; Repository is gone"
    ),
    "hydra-core": Breakage("1.1.0", "defaults are merged in another order (_self_)"),
    "ipykernel": Breakage("6.0.0", "what a kernel's child processes print became output of the cell"),
    "mlflow-skinny": Breakage("3.0.0", "recipes and some flavours are gone; log_model has other words"),
    "numpy": Breakage("2.0.0", "np.float_ and others are gone; other types of mixed sums; another ABI"),
    "optuna": Breakage("4.0.0", "optuna.multi_objective is gone; integrations moved to another package"),
    "pandas": Breakage("2.0.0", "DataFrame.append and iteritems are gone; 3.0 has other texts, and copies"),
    "pillow": Breakage("10.0.0", "Image.ANTIALIAS, ImageDraw.textsize and ImageFont.getsize are gone"),
    "pydantic": Breakage("2.0", "validators, config, .dict() and .json() have other names and rules"),
    "pyyaml": Breakage("6.0", "yaml.load needs a Loader"),
    "sqlalchemy": Breakage("2.0.0", "Engine.execute and texts as statements are gone"),
    "starlette": Breakage("1.0.0", "on_startup, on_shutdown and the decorators of routes are gone"),
    "timm": Breakage("0.9.0", "pretrained models have other names, with the tag of their weights"),
    "torch": Breakage("2.6.0", "torch.load reads weights only, unless told otherwise"),
    "transformers": Breakage("5.0.0", "TensorFlow and JAX models and many deprecated arguments are gone"),
    "wandb": Breakage("0.18.0", "another process in another language writes the runs"),
}
# Young ones, of which no such release is named here: they promise little before their next major.
YOUNG = {"lightkube", "mcp", "obstore", "trackio"}


def needed(project: dict[str, Any]) -> Iterator[tuple[Requirement, bool]]:
    """(requirement, whether every install has it), of the package and of its extras."""
    for text in project["dependencies"]:
        yield Requirement(text), True
    for extra, texts in project["optional-dependencies"].items():
        for text in texts if extra not in OURS else ():
            if plain(Requirement(text).name) != "hostler":
                yield Requirement(text), False


def brought(names: Iterable[str]) -> dict[str, list[str]]:
    """Every package that an install of these has here, with those that it needs itself."""
    found: dict[str, list[str]] = {}
    waiting = [plain(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            texts = distribution(name).requires or []
            wanted = [
                r for r in map(Requirement, texts) if r.marker is None or r.marker.evaluate({"extra": ""})
            ]
            found[name] = sorted({plain(r.name) for r in wanted})
            waiting += found[name]
    return found


def sbom(project: dict[str, Any]) -> dict[str, Any]:
    required = brought(r.name for r, always in needed(project) if always)
    direct = {plain(r.name) for r, _ in needed(project)}
    whole = {**{name: [] for name in direct}, **required}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'hostler ' + project['version'])}",
        "version": 1,
        "metadata": {"component": _component("hostler", project["version"], project["license"])},
        "components": [_installed(name, name in required) for name in sorted(whole)],
        "dependencies": [
            {"ref": "hostler", "dependsOn": sorted(direct)},
            *({"ref": name, "dependsOn": whole[name]} for name in sorted(whole)),
        ],
    }


def _installed(name: str, required: bool) -> dict[str, Any]:
    found = distribution(name)
    told = found.metadata["License-Expression"] or found.metadata["License"] or ""
    version = found.version.partition("+")[0]
    scope = "required" if required else "optional"
    return {**_component(name, version, told.splitlines()[0] if told else ""), "scope": scope}


def _component(name: str, version: str, license: str) -> dict[str, Any]:
    known = [{"license": {"name": license}}] if license else []
    where = {"type": "library", "bom-ref": name, "name": name, "version": version}
    return {**where, "purl": f"pkg:pypi/{name}@{version}", "licenses": known}


def constraints(bom: dict[str, Any]) -> str:
    lines = [f"{one['name']}=={one['version']}\n" for one in bom["components"]]
    return "# Versions that the tests passed with: pip install hostler -c constraints.txt\n" + "".join(lines)


def problems(project: dict[str, Any], bom: dict[str, Any], pinned: str) -> list[str]:
    """What is wrong with the two files, a line each."""
    versions = {one["name"]: one["version"] for one in bom["components"]}
    found = [] if pinned == constraints(bom) else ["constraints.txt is not what sbom.cdx.json says"]
    if bom["metadata"]["component"]["version"] != project["version"]:
        found.append("sbom.cdx.json is of another version of hostler")
    for requirement, _ in needed(project):
        name = plain(requirement.name)
        if name not in versions:
            found.append(f"{name} is not in sbom.cdx.json")
        elif not requirement.specifier.contains(versions[name], prereleases=True):
            found.append(
                f"{name} {versions[name]} is not what pyproject.toml allows: {requirement.specifier}"
            )
        if name in versions and not _is_bounded(requirement, versions[name]):
            found.append(f"{name} needs an upper bound in pyproject.toml: {_why(name)}")
    for row in bom["dependencies"]:
        found += [
            f"{row['ref']} needs {n}, which is not named" for n in row["dependsOn"] if n not in versions
        ]
    return found


def _is_bounded(requirement: Requirement, version: str) -> bool:
    """Whether the major version after the one that is installed stays out, where it has to."""
    name = plain(requirement.name)
    following = f"{Version(version).major + 1}.0"
    return name not in {*BROKE, *YOUNG} or not requirement.specifier.contains(following)


def _why(name: str) -> str:
    broke = BROKE.get(name)
    return f"{broke.release} broke what used it: {broke.what}" if broke else "it is young"


def main(words: list[str]) -> int:
    import tomllib  # since Python 3.11

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bill, pinned = ROOT / "sbom.cdx.json", ROOT / "constraints.txt"
    if words == ["--write"]:
        try:
            made = sbom(project)
        except PackageNotFoundError as error:
            sys.exit(f"{error.name} is not installed here: make .venv/.test")
        bill.write_text(json.dumps(made, indent=1) + "\n")
        pinned.write_text(constraints(made))
    wrong = problems(project, json.loads(bill.read_text()), pinned.read_text())
    if wrong:
        print(*wrong, "→ .venv/bin/python tests/dependencies.py --write", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
