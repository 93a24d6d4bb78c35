"""The words of `hostler worker`: its help and its refusals look like those of every other verb."""

from __future__ import annotations

import pytest

from hostler.backends.registry import BACKENDS
from hostler.worker.options import parser


def test_help_separates_options_for_people_from_those_for_fleets() -> None:
    text = parser().format_help()
    assert text.startswith("Usage: hostler worker [OPTIONS] STORE\n\n  Take runs from STORE")
    people, _, fleets = text.partition("Given by fleets, not by hand:")
    assert "--slots N" in people and "-h, --help" in people and "--section N" in people
    assert "--host NAME" in fleets and "--gce" not in text and "--slots" not in fleets
    assert "--parent-fd" not in text and max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: store"),
        (["s", "--slotz", "3"], "unrecognized arguments: --slotz 3"),
        (["s", "--slot", "3"], "unrecognized arguments: --slot 3"),
        (["s", "--slots", "three"], "argument --slots: invalid int value: 'three'"),
    ],
)
def test_a_wrong_word_is_one_line_and_where_to_look(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        parser().parse_args(words)
    assert left.value.code == 2
    assert capsys.readouterr().err == f"hostler: {said}\n  → hostler worker --help\n"


def test_what_is_not_said_is_as_it_always_was() -> None:
    given = parser().parse_args(["store"])
    assert (given.sweep, given.slots, given.nodes, given.session, given.dead) == ([], None, 1, "", "")
    assert given.host == "local" and not any((given.step, given.billed, given.no_parent))


@pytest.mark.parametrize("name", BACKENDS)
def test_the_host_is_named_and_older_flags_still_name_it(name: str) -> None:
    assert parser().parse_args(["store", "--host", name]).host == name
    assert parser().parse_args(["store", f"--{name}"]).host == name
