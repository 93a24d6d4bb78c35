"""The packages that a release names, with planted faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

import dependencies

tomllib = pytest.importorskip("tomllib")  # since Python 3.11
ROOT = Path(__file__).parents[2]


@pytest.fixture
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


@pytest.fixture
def bom() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "sbom.cdx.json").read_text())
    return found


def found(project: dict[str, Any], bom: dict[str, Any]) -> str:
    return "\n".join(dependencies.problems(project, bom, dependencies.constraints(bom)))


def test_release_names_every_package_in_a_version_that_fits(
    project: dict[str, Any], bom: dict[str, Any]
) -> None:
    assert dependencies.problems(project, bom, (ROOT / "constraints.txt").read_text()) == []
    assert {"click", "pydantic", "pydantic-core", "pyyaml"} <= {one["name"] for one in bom["components"]}


def test_package_that_nobody_names_is_a_problem(project: dict[str, Any], bom: dict[str, Any]) -> None:
    project["dependencies"] += ["requests>=2"]
    assert "requests is not in sbom.cdx.json" in found(project, bom)
    bom["dependencies"][0]["dependsOn"] += ["left-pad"]
    assert "hostler needs left-pad, which is not named" in found(project, bom)


def test_version_that_is_not_allowed_is_a_problem(project: dict[str, Any], bom: dict[str, Any]) -> None:
    project["dependencies"] = ["click>=99,<100"]
    assert "is not what pyproject.toml allows" in found(project, bom)


@pytest.mark.parametrize("name", sorted({*dependencies.BROKE, *dependencies.YOUNG}))
def test_package_that_broke_before_needs_an_upper_bound(
    project: dict[str, Any], bom: dict[str, Any], name: str
) -> None:
    [version] = [one["version"] for one in bom["components"] if one["name"] == name]
    major = Version(version).major
    for bound in ("", f",<{major + 2}"):
        project["dependencies"] = [f"{name}>=0.1{bound}"]
        assert f"{name} needs an upper bound" in found(project, bom)
    project["dependencies"] = [f"{name}>=0.1,<{major + 1}"]
    assert f"{name} needs" not in found(project, bom)


def test_every_row_of_what_broke_is_of_a_package(project: dict[str, Any]) -> None:
    direct = {dependencies.plain(one.name) for one, _ in dependencies.needed(project)}
    assert {*dependencies.BROKE, *dependencies.YOUNG} <= direct
    assert all(row.what and Version(row.release) for row in dependencies.BROKE.values())


def test_files_that_differ_are_a_problem(project: dict[str, Any], bom: dict[str, Any]) -> None:
    assert dependencies.problems(project, bom, "click==1") == [
        "constraints.txt is not what sbom.cdx.json says"
    ]
    project["version"] = "9"
    assert "another version of hostler" in found(project, bom)
