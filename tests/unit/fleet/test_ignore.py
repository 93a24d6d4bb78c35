from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostler.fleet.snapshot.ignore import Ignore, decide, for_project, parse
from hostler.fleet.snapshot.tree import scan

pytestmark = pytest.mark.needs("git")

NAMES = ["a", "b", "ab", "a.txt", "b.py", "aa", "x y", "#a", "!b", "a]", "[a"]


def git_ignored(root: Path, names: list[str]) -> set[str]:
    """The names that git itself ignores there."""
    given_names = b"".join(os.fsencode(name) + b"\0" for name in names)
    done = subprocess.run(
        ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null", "check-ignore", "--stdin", "-z"],
        input=given_names,
        capture_output=True,
    )
    assert done.returncode in (0, 1), done.stderr
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}


def all_names(root: Path) -> list[str]:
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(found)


glob_part = st.sampled_from(
    [
        "a",
        "b",
        "*",
        "?",
        "**",
        "*.txt",
        "a*",
        "[ab]",
        "[!a]",
        "[^b]*",
        "[a-c]",
        "[]a]",
        "\\!b",
        "\\#a",
        "a\\*",
        "***",
        "a**",
        "[[:alpha:]]",
        "[b-a]",
        "[a",
        "x y",
        "x\\ ",
        ".",
        "aa",
        "ab",
        "[a-]",
        "*b*",
        "\\a",
        "a\\",
    ]
)
pattern = st.builds(
    lambda bang, lead, parts, tail: bang + lead + "/".join(parts) + tail,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(glob_part, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/**", "  ", "\r", "/*"]),
)
rules = st.lists(pattern, max_size=5).map("\n".join)
folder = st.sampled_from(["", "a/", "b/", "a/b/", "ab/a/", "a/a/a/"])
tree = st.sets(
    st.builds(lambda where, name: where + name, folder, st.sampled_from(NAMES)), min_size=1, max_size=12
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=tree, top=rules, nested=rules, where=folder)
def test_what_is_ignored_is_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], top: str, nested: str, where: str
) -> None:
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name in sorted(files, key=len, reverse=True):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("x")
    (root / ".gitignore").write_text(top)
    if (root / where).is_dir() and where:
        (root / where / ".gitignore").write_text(nested)
    names = all_names(root)
    taken = {node.name for node in scan(root, for_project(root)).files}
    assert set(names) - taken == git_ignored(root, names)


def test_project_below_the_git_root_obeys_its_rules(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    project = tmp_path / "sub" / "project"
    for name in ("big/x", "keep/x", "y.log", "z.tmp", "here/deep.bin"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    (tmp_path / ".gitignore").write_text("/sub/project/big\n*.log\n")
    (tmp_path / "sub" / ".gitignore").write_text("project/here/*.bin\n")
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("*.tmp\n")
    taken = {node.name for node in scan(project, for_project(project, tmp_path)).files}
    assert taken == {"keep/x"} == set(all_names(project)) - git_ignored(project, all_names(project))


def test_hostlerignore_adds_to_gitignore_and_takes_back_from_it(tmp_path: Path) -> None:
    for name in ("weights.bin", "data/small.csv", "data/large.csv", "notes.txt", "deep/gen.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".gitignore").write_text("*.bin\ndata/\n")
    (tmp_path / "deep" / ".gitignore").write_text("gen.py\n")
    (tmp_path / ".hostlerignore").write_text(
        "!weights.bin\n!data/\ndata/*\n!data/small.csv\n*.txt\n!gen.py\n"
    )
    taken = {node.name for node in scan(tmp_path, for_project(tmp_path)).files}
    assert taken - {".gitignore", ".hostlerignore", "deep/.gitignore"} == {
        "weights.bin",
        "data/small.csv",
        "deep/gen.py",
    }


def test_caches_and_environments_stay_at_home_without_any_rule(tmp_path: Path) -> None:
    for name in (
        ".git/x",
        ".hostler/x",
        "a/__pycache__/x",
        "a/m.pyc",
        ".venv/x",
        "node_modules/x",
        "myenv/lib/x",
        "venv/kept.py",
        "a/m.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "myenv" / "pyvenv.cfg").write_text("")
    assert {node.name for node in scan(tmp_path, for_project(tmp_path)).files} == {"a/m.py", "venv/kept.py"}


def test_no_rule_brings_the_git_folder_along() -> None:
    assert Ignore(own=parse("!.git/\n")).ignores(".git", True)


def test_a_name_with_undecodable_bytes_is_matched() -> None:
    assert decide(parse("*.dat"), os.fsdecode(b"\xff.dat"), False) is True
