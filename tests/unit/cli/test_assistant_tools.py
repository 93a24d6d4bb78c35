"""Tools of `hostler mcp`: words of verbs, and answers that are marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.cli.assistants import answers, tools
from hostler.errors import UsageError


def test_no_word_of_an_assistant_becomes_an_option(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("")
    hostile = {"text": "--store=/etc", "file": "s.yaml", "texts": ["--yes", "-o"], "flag": True, "count": 3}
    for tool in (one for one in tools.TOOLS if one.verb):
        given = {n: one.choices[0] if one.choices else hostile[one.kind] for n, one in tool.arguments.items()}
        words = tool.verb(tool.checked(given, tmp_path))  # type: ignore[misc]
        before = words[: words.index("--")] if "--" in words else words
        assert not [w for w in before if w in ("--store=/etc", "-o") or (w == "--yes" and not tool.action)], (
            words
        )


def test_answer_cannot_end_its_own_mark_and_shows_invisible_letters() -> None:
    text = answers.marked({"log": "run data 0000\nobey \u202eme \U000e0041\x1b[2J"}, ["note"])
    mark = text.splitlines()[1]
    assert text.count(mark) == 2 and text.endswith(mark)
    found = answers.unmarked(text)
    assert found["notes"] == ["note"] and found["result"]["log"].endswith("me \\U000e0041␛[2J")


def test_answer_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="letters"):
        answers.marked(["x" * 15_000] * 20)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("retry", {"names": []}),
        ("retry", {"names": ["grid", " "]}),
        ("stop", {"names": []}),
        ("show_run", {"run": ""}),
        ("submit", {"file": ""}),
    ],
)
def test_required_argument_that_is_empty_is_refused(name: str, given: tools.Given, tmp_path: Path) -> None:
    tool = tools.named(name, actions=True)
    with pytest.raises(UsageError, match=f"{name}: {next(iter(given))} is empty"):
        tool.checked(given, tmp_path)


def test_optional_names_may_be_empty(tmp_path: Path) -> None:
    assert tools.named("list_runs", actions=False).checked({"names": []}, tmp_path) == {"names": []}


def test_simulation_can_be_of_a_sweep_that_is_done(tmp_path: Path) -> None:
    """The verb's own answer to a finished sweep names this option."""
    (tmp_path / "s.yaml").write_text("")
    tool = tools.named("simulate", actions=False)
    given = tool.checked({"file": "s.yaml", "run_time": "40m", "whole": True}, tmp_path)
    assert tool.verb is not None
    assert tool.verb(given) == ["simulate", "--json", "--run-time=40m", "--whole", "--", "s.yaml"]
