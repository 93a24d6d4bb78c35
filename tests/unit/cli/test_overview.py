"""`hostler --help`: the table of verbs, as wide as the terminal, without what verbs need."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from hostler.cli import overview
from hostler.cli.main import cli

LOADED = """
import sys
from hostler.cli.entry import main
sys.argv = ["hostler", "--help"]
try:
    main()
except SystemExit as left:
    print(left.code, sorted({"click", "pathlib", "inspect"} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("columns", [60, 80, 100, 300])
def test_help_lines_fit_between_both_widths(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    groups = overview.text()[len(overview.ABOUT) :]
    longest = max(map(len, groups.splitlines()))
    assert min(columns, overview.WIDEST) - 22 <= longest <= min(columns, overview.WIDEST) - overview.MARGIN


def test_help_text_names_every_verb_once() -> None:
    lines = overview.text()[len(overview.ABOUT) :].splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert sorted(named) == sorted(overview.VERBS)


def test_group_help_is_that_of_the_overview() -> None:
    with click.Context(cli) as context:
        assert cli.get_help(context) == overview.text()


def test_overview_prints_without_loading_click() -> None:
    told = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) == (overview.text() + "\n", "0 []\n")


def test_overview_for_a_reader_that_left_ends_well() -> None:
    words = [sys.executable, "-m", "hostler", "--help"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout and command.stderr
        command.stdout.close()
        assert (command.wait(60), command.stderr.read()) == (0, b"")


def test_overview_in_ascii_says_all_verbs() -> None:
    words = [sys.executable, "-m", "hostler", "-h"]
    told = subprocess.run(words, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}, capture_output=True)
    assert told.returncode == 0 and b"VERB \\u2026" in told.stdout and b"completion" in told.stdout
