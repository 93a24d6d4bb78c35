"""What is made from code in the docs, the list of pages, and the code blocks of all documents."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from hostler.backends.base import Capabilities
from hostler.backends.project_file import load_project, load_sweep
from hostler.backends.registry import BACKENDS
from hostler.cli.main import ALIASES, VERBS, declared
from hostler.spec.project import default_project

ROOT = Path(__file__).parents[2]
TABLES = runpy.run_path(str(ROOT / "docs" / "tables.py"))
PAGES = sorted(ROOT.glob("docs/*.md"))
DOCS = sorted([*ROOT.glob("*.md"), *PAGES, *ROOT.glob("examples/*/*.md")])
SHARED = dict.fromkeys(("sge", "pbs", "lsf"), "schedulers.md")  # one page for the three
BLOCK = re.compile(r"(<!-- not ours -->\n)?^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(path: Path, *languages: str) -> Iterator[str]:
    """Code blocks in one of these languages; those under `<!-- not ours -->` are other tools'."""
    for foreign, indent, language, body in BLOCK.findall(path.read_text()):
        if language in languages and not foreign:
            yield textwrap.dedent(indent + body)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_is_made_from_code_is_as_the_code_is(path: Path) -> None:
    assert TABLES["filled"](path.read_text()) == path.read_text(), "make docs"


def test_every_capability_has_words_and_every_backend_page_its_own() -> None:
    assert list(TABLES["SAID"]) == [one.name for one in fields(Capabilities)]
    for name in BACKENDS:
        page = (ROOT / "docs" / SHARED.get(name, f"{name}.md")).read_text()
        assert f"<!-- made: capabilities {'sge' if name in SHARED else name} -->" in page


@pytest.mark.parametrize("name", BACKENDS)
def test_backend_page_says_what_it_needs_makes_and_leaves(name: str) -> None:
    page = (ROOT / "docs" / SHARED.get(name, f"{name}.md")).read_text().lower()
    for word in ("permissions", "what it makes", "clean"):
        assert word in page or (word == "what it makes" and "what is made" in page), word


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("local", "real workers"),
        ("ssh", "a real sshd"),
        ("slurm", "a real Slurm"),
        ("sge", "a real Grid Engine"),
        ("pbs", "answers written after"),
        ("lsf", "answers written after"),
        ("gce", "an emulator"),
        ("kubernetes", "a stand-in"),
    ],
)
def test_pages_say_how_a_backend_is_tested(name: str, words: str) -> None:
    def row(page: str) -> str:
        """The row of a table that says it; empty if none does."""
        rows = (ROOT / page).read_text().splitlines()
        return next(
            (line for line in rows if f"{page_of})" in line and f"`{name}`" in line and words in line), ""
        )

    page_of = SHARED.get(name, f"{name}.md")
    assert row("README.md") and row("docs/backends.md")
    own = (ROOT / "docs" / page_of).read_text().partition("## How it is tested")[2]
    own = next((line for line in own.split("\n- ") if f"`{name}`" in line), own) if name in SHARED else own
    assert words in own
    assert ("not yet on" in own) == (name in ("pbs", "lsf", "gce", "kubernetes"))


def test_the_list_of_messages_has_messages_with_their_hints() -> None:
    made = TABLES["messages"]()
    assert made.count("\n| ") > 300
    assert "| it says | what to do |" in made and "hostler status lists all runs" in made


def listed() -> list[str]:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    return [name for part in nav for names in part.values() for name in names]


def test_every_page_is_in_the_list_of_the_site_once() -> None:
    assert len(listed()) == len(set(listed()))
    assert {path.name for path in PAGES} <= set(listed())


@pytest.mark.parametrize("path", DOCS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_python_in_the_docs_compiles(path: Path) -> None:
    for block in blocks(path, "python"):
        ast.parse(block)


MARKED = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["adding-a-backend", "testing"])
def test_python_that_is_marked_runs(name: str) -> None:
    found = MARKED.findall((ROOT / "docs" / f"{name}.md").read_text())
    assert found
    for block in found:
        exec(compile(block, name, "exec"), {"__name__": "docs"})


@pytest.mark.parametrize("path", DOCS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_yaml_in_the_docs_is_read_by_hostler(path: Path, tmp_path: Path) -> None:
    for n, block in enumerate(blocks(path, "yaml", "json")):
        file = tmp_path / f"{n}.yaml"
        file.write_text(block)
        if {"parameters", "hyperparameters"} & set(yaml.safe_load(block)):
            load_sweep(file, default_project(tmp_path), commanded=False)
        else:
            load_project(file)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("src/hostler/backends/*/fleet.yaml")), ids=lambda path: path.parent.name
)
def test_ready_fleet_parses_and_says_what_to_fill_in(path: Path) -> None:
    project = load_project(path)
    assert {fleet.backend for fleet in project.fleets.values()} == {path.parent.name}
    assert project.fleet in project.fleets
    assert "FILL IN" in path.read_text()


def test_there_is_a_ready_fleet_for_every_backend() -> None:
    assert {path.parent.name for path in ROOT.glob("src/hostler/backends/*/fleet.yaml")} == set(BACKENDS)
    page = (ROOT / "examples" / "fleets" / "README.md").read_text()
    assert all(f"../../src/hostler/backends/{name}/fleet.yaml" in page for name in BACKENDS)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_options_in_the_docs_are_those_of_the_program(path: Path) -> None:
    for block in blocks(path, "", "sh", "bash"):
        for line in block.splitlines():
            if line.startswith("hostler ") and "…" not in line:
                check_options(shlex.split(line, comments=True)[1:])


def check_options(words: list[str]) -> None:
    """Options of hostler's stand before a script's words; whatever follows those is not ours."""
    verb = ALIASES.get(words[0], words[0])
    assert verb in VERBS, words
    command: Any = declared(verb)
    while isinstance(command, click.Group) and len(words) > 1 and words[1] in command.commands:
        words = words[1:]
        command = command.commands[words[0]]
    if not isinstance(command, click.Command) or verb == "worker":
        return
    known = {word: one for one in command.params for word in (*one.opts, *one.secondary_opts)}
    known |= {"--help": None, "-h": None}
    rest = iter(words[1:])
    own = command.context_settings.get("ignore_unknown_options", False)
    for word in rest:
        if not word.startswith("-") or word == "--":
            if own or word == "--":
                return
            continue
        name = word.partition("=")[0]
        assert name in known, f"hostler {verb} has no {name}"
        option = known[name]
        if isinstance(option, click.Option) and not option.is_flag and not option.count and "=" not in word:
            next(rest, None)
