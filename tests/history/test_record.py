"""The record of doses: it goes on where it was interrupted, and the page shows what is noted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import record
from record import BEGIN, DOSES, END, Book, Dose, Row, left, main, table, with_table

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


def test_interrupted_recording_goes_on_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Book(tmp_path / "doses.json", tmp_path / "page.md")
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
    assert table(book.rows()) in book.page.read_text()


def test_page_shows_the_rows_that_are_noted() -> None:
    book = Book(record.HERE / "doses.json", record.ROOT / "docs" / "reliability.md")
    assert book.rows(), "nothing was ever run"
    assert with_table(book.page.read_text(), book.rows()) == book.page.read_text()
    assert {one.dose for one in book.rows()} <= {dose.name for dose in DOSES}


def test_commands_of_all_doses_name_tests_that_exist() -> None:
    names = {word for dose in DOSES for word in dose.command.replace("'", "").split() if "::" in word}
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", *sorted(names)]
    answer = subprocess.run(words, cwd=record.ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    count = sum(int(line.rpartition(": ")[2]) for line in answer.stdout.split("\n") if ".py: " in line)
    assert count >= len(names)
