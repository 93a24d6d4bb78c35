"""The record of doses: it goes on where it was interrupted, and the page shows what is noted."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import record
from record import BEGIN, DOSES, END, LESSENING, Book, Dose, Row, left, main, run, short, table, with_table

PAGE = f"# Page\n\n{BEGIN}\nold\n{END}\n\nafter\n"


def row(dose: str, commit: str, result: str = "passed") -> Row:
    return Row(dose, "kills", "true", commit, "2026-11-18 03:00", 7, result)


def test_doses_of_another_commit_are_run_again() -> None:
    doses = [Dose("a", "kills", "true"), Dose("b", "kills", "true")]
    assert left(doses, [row("a", "one")], "one") == doses[1:]
    assert left(doses, [row("a", "one")], "two") == doses


def test_table_shows_the_newest_row_of_each_dose() -> None:
    page = with_table(PAGE, [row("a", "one", "FAILED (1)"), row("a", "two")])
    assert "old" not in page and "FAILED" not in page and page.endswith("\n\nafter\n")
    assert "| a: kills | `true` | `two` | 2026-11-18 03:00 | 7 | passed |" in page
    assert with_table(page, [row("a", "two")]) == page


def test_table_names_doses_that_were_not_run_yet() -> None:
    page = table([row("b", "one")], [Dose("a", "kills", "make a"), Dose("b", "kills", "true")])
    assert page.splitlines()[3] == "| a: kills | `make a` | | | | not run yet |"
    assert "| b: kills | `true` | `one`" in page and page.count("| b:") == 1


def test_row_tells_what_its_dose_found_ever_after(tmp_path: Path) -> None:
    book = Book(tmp_path / "doses.json", tmp_path / "page.md", ())
    book.page.write_text(PAGE)
    with pytest.raises(SystemExit, match="a was not run yet: run it first"):
        main(["--found", "a", "it hung; 0123 mended it"], book)
    book.note(row("a", "one", "FAILED (1)"))
    assert main(["--found", "a", "it hung; 0123 mended it"], book) == 0
    book.note(row("a", "two"))
    assert "| 7 | passed; found: it hung; 0123 mended it |" in book.page.read_text()


def test_short_doses_are_those_that_took_or_should_take_less() -> None:
    doses = [
        Dose("quick", "kills", "true", 1),
        Dose("slow", "kills", "true", 9),
        Dose("was", "kills", "true", 9),
    ]
    assert short(doses, [row("was", "one")], 120) == [doses[0], doses[2]]


def test_interrupted_recording_goes_on_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Book(tmp_path / "doses.json", tmp_path / "page.md", ())
    book.page.write_text(PAGE)
    monkeypatch.setattr(record, "the_commit", lambda: "c")
    touched = [tmp_path / name for name in "ab"]
    words = [f"echo x >> {path}" for path in touched]
    first, second = Dose("a", "kills", words[0]), Dose("b", "kills", "exit 3")
    with pytest.raises(SystemExit, match="no dose is called z"):
        main(["z"], book, [first, second])
    assert main(["a"], book, [first, second]) == 0  # and then the machine went down
    assert main([], book, [first, second]) == 1
    assert touched[0].read_text() == "x\n", "it was not run twice"
    assert [(one.dose, one.result) for one in book.rows()] == [("a", "passed"), ("b", "FAILED (3)")]
    assert table(book.rows(), known=record.in_history) in book.page.read_text()


@pytest.mark.parametrize("name", LESSENING)
def test_dose_is_whole_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "0.002")
    assert run(Dose("a", "kills", f'test -z "${name}"'), "c").result == "passed"
    assert run(Dose("a", "kills", f"{name}=3 sh -c 'test \"${name}\" = 3'"), "c").result == "passed"


def test_commit_that_no_reader_finds_is_an_earlier_one() -> None:
    page = table([row("a", "one"), row("b", "two")], known=lambda commit: commit == "one")
    assert "| `true` | `one` |" in page and "| `true` | an earlier commit |" in page


def test_commit_is_known_where_its_history_is(tmp_path: Path) -> None:
    git, shallow = Git(tmp_path / "whole"), Git(tmp_path / "shallow")
    assert record.in_history("0123456789", git.root), "nobody can tell"
    git("init")
    for n in range(2):
        git("commit", "--allow-empty", "-m", str(n))
    first = git("rev-parse", "--short=10", "HEAD~1")
    git("checkout", "-b", "other", "HEAD~1")
    git("commit", "--allow-empty", "-m", "aside")
    aside = git("rev-parse", "HEAD")
    git("checkout", "-")
    assert record.in_history(first, git.root) and record.in_history(f"{first}-dirty", git.root)
    assert not record.in_history("0123456789", git.root) and not record.in_history(aside, git.root)
    shallow("clone", "--depth", "1", git.root.as_uri(), ".")
    assert record.in_history(first, shallow.root)


@pytest.mark.skipif(not record.has_history(), reason="no history of commits")
def test_commits_that_mended_are_in_the_history() -> None:
    texts = [one.found for one in Book(record.HERE / "doses.json", record.ROOT).rows() if one.found]
    texts += found_lines((record.ROOT / record.PAGE).read_text())
    mended = {text: re.findall(r"`([0-9a-f]{7,40})`", text) for text in texts}
    assert [text for text, commits in mended.items() if not commits] == []
    commits = {commit for named in mended.values() for commit in named}
    assert [commit for commit in sorted(commits) if not record.in_history(commit)] == []


def found_lines(page: str) -> list[str]:
    """What the page says that was found, a text for each; a text may go on in the next lines."""
    section = page.partition("## What it has found\n")[2].partition("\n## ")[0]
    lines = re.split(r"(?m)^- ", section)[1:]
    assert lines, "the page has no list of what was found"
    return lines


class Git:
    """A folder in which git is called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def __call__(self, *words: str) -> str:
        own = ["-c", "user.name=a", "-c", "user.email=a@b"]
        argv = ["git", "-C", str(self.root), *own, *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def test_notes_of_a_dose_make_no_other_commit(tmp_path: Path) -> None:
    git = Git(tmp_path)
    assert record.the_commit(tmp_path) == "unknown"
    git("init")
    for name in (record.NOTES, record.PAGE, "code.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git("add", "."), git("commit", "-m", "code")
    commit = record.the_commit(tmp_path)
    (tmp_path / record.NOTES).write_text("2")
    assert record.the_commit(tmp_path) == commit
    git("commit", "-am", "notes")
    assert record.the_commit(tmp_path) == commit
    (tmp_path / "code.py").write_text("2")
    assert record.the_commit(tmp_path) == f"{commit}-dirty"


def test_page_shows_the_rows_that_are_noted() -> None:
    book = Book(record.HERE / "doses.json", record.ROOT / "docs" / "reliability.md")
    assert book.rows(), "nothing was ever run"
    page = book.page.read_text()
    known = record.in_history if record.has_history() else lambda commit: f"| `{commit}` |" in page
    assert with_table(page, book.rows(), DOSES, known) == page
    assert {one.dose for one in book.rows()} <= {dose.name for dose in DOSES}


def test_doses_longer_than_the_usual_limit_have_their_own() -> None:
    usual = 300  # seconds, of pyproject.toml
    for dose in (dose for dose in DOSES if dose.name != "fuzz"):  # many tests of two minutes
        file, _, name = next(word for word in shlex.split(dose.command) if "::" in word).partition("::")
        tree = ast.parse((record.ROOT / file).read_text())
        name = name.partition("[")[0]
        [test] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
        limits = [ast.unparse(one) for one in test.decorator_list]
        own = [int(one.rpartition("(")[2][:-1]) for one in limits if one.startswith("pytest.mark.timeout(")]
        assert max([usual, *own]) > 60 * dose.minutes, dose.name


def test_commands_of_all_doses_name_tests_that_exist() -> None:
    names = {word for dose in DOSES for word in dose.command.replace("'", "").split() if "::" in word}
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", *sorted(names)]
    answer = subprocess.run(words, cwd=record.ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    count = sum(int(line.rpartition(": ")[2]) for line in answer.stdout.split("\n") if ".py: " in line)
    assert count >= len(names)
