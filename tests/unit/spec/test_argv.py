from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import UsageError
from hostler.spec.argv import Built, build, params_of, split_command
from hostler.spec.job import Job
from hostler.spec.params import flatten

PLACES = {
    "checkpoint_dir": "/c k",
    "output_dir": "/o",
    "data_dir": "/d",
    "run_id": "0000001-a-ffffff",
    "params_file": "/p.json",
    "params_json": '{"lr": 1}',
}


def built(
    command: tuple[str, ...] = ("run",),
    params: dict[str, Any] | None = None,
    resuming: bool = False,
    **keys: Any,
) -> Built:
    return build(Job(name="a", command=command, **keys), params or {}, PLACES, resuming)


def words(*args: Any, **keys: Any) -> list[str]:
    return list(built(*args, **keys).argv)


@pytest.mark.parametrize(
    ("style", "argv"),
    [
        (
            "flags",
            [
                "--lr",
                "0.001",
                "--on",
                "true",
                "--off",
                "false",
                "--m.w",
                "3",
                "--l",
                "1",
                "x y",
                "--s",
                "a b",
            ],
        ),
        ("equals", ["lr=0.001", "on=true", "off=false", "m.w=3", 'l=[1,"x y"]', "s=a b"]),
        ("json", []),
        ("env", []),
        ("none", []),
    ],
)
def test_parameters_reach_the_command_in_its_style_and_order(style: str, argv: list[str]) -> None:
    params = {"lr": 1e-3, "on": True, "off": False, "no": None, "m": {"w": 3}, "l": [1, "x y"], "s": "a b"}
    assert words(("run",), params, style=style) == ["run", *argv]


def test_style_env_gives_variables_as_given_and_in_capitals() -> None:
    params = {"lr": 0.1, "m.w-x": 3, "1st": "a b", "path": "p", "no": None, "l": [1, 2]}
    assert built(("run",), params, style="env", env={"LR": "old", "KEEP": "{run_id}"}).env == {
        "KEEP": PLACES["run_id"],
        "LR": "0.1",
        "lr": "0.1",
        "M_W_X": "3",
        "m.w-x": "3",
        "_1ST": "a b",
        "1st": "a b",
        "path": "p",
        "L": "[1,2]",
        "l": "[1,2]",
    }


def test_a_placeholder_takes_its_parameter_out_of_the_flags() -> None:
    params = {"lr": 0.1, "b": 2, "m": {"w": 3, "d": 4}, "files": ["a b", "c"], "none": None}
    command = ("run", "--rate={lr}", "{m.w}", "{files}", "[{none}]", "in-{files}")
    assert words(command, params) == [
        "run", "--rate=0.1", "3", "a b", "c", "[]", 'in-["a b","c"]', "--b", "2", "--m.d", "4",
    ]  # fmt: skip


def test_places_are_filled_anywhere_in_a_word_and_in_variables() -> None:
    command = ("run", "--out={output_dir}/{run_id}.txt", "{data_dir}", "{params_file}")
    found = built(command, {"lr": 1}, style="json", env={"CK": "x{checkpoint_dir}y"})
    assert found.argv == ("run", "--out=/o/0000001-a-ffffff.txt", "/d", "/p.json")
    assert found.env == {"CK": "x/c ky"}


def test_unknown_braces_stay_and_values_are_not_reread() -> None:
    command = ("run", "{who}", '{"lr": {lr}}', "{}", "${HOME}", "{a}{b}")
    params = {"lr": 0.1, "a": "{b}", "b": "{a}{run_id}"}
    assert words(command, params) == ["run", "{who}", '{"lr": 0.1}', "{}", "${HOME}", "{b}{a}{run_id}"]


def test_place_wins_over_a_parameter_of_its_name() -> None:
    assert words(("run", "{run_id}"), {"run_id": 7}) == ["run", PLACES["run_id"], "--run_id", "7"]


def test_resuming_adds_words_or_replaces_the_command() -> None:
    more = {"resume": ("--resume", "{checkpoint_dir}/last.pt")}
    assert words(("run",), {"lr": 1}, **more) == ["run", "--lr", "1"]
    assert words(("run",), {"lr": 1}, True, **more) == ["run", "--lr", "1", "--resume", "/c k/last.pt"]
    whole = {"resume": ("go-on", "{checkpoint_dir}", "{lr}"), "resume_whole": True}
    assert words(("run",), {"lr": 1, "b": 2}, False, **whole) == ["run", "--lr", "1", "--b", "2"]
    assert words(("run",), {"lr": 1, "b": 2}, True, **whole) == ["go-on", "/c k", "1", "--b", "2"]


def test_values_that_look_like_options_are_tied_to_their_key() -> None:
    params = {"a": "-x", "b": -1e-05, "c": -5, "d": -0.5, "e": "--"}
    assert words(("run",), params) == ["run", "--a=-x", "--b=-1e-05", "--c", "-5", "--d", "-0.5", "--e=--"]


def test_argparse_reads_what_flags_write(tmp_path: Path) -> None:
    script = tmp_path / 'it\'s a "script"; echo x.py'
    script.write_text(
        "import argparse, json\np = argparse.ArgumentParser()\n"
        "p.add_argument('--lr', type=float)\np.add_argument('--s')\n"
        "p.add_argument('--l', nargs='*', type=int)\n"
        "p.add_argument('--b', type=json.loads)\nprint(json.dumps(vars(p.parse_args())))"
    )
    params = {"lr": -1e-7, "s": "-a 'b'\n\"c\"; echo $HOME `x` *", "l": [1, -2], "b": True}
    argv = words((sys.executable, str(script)), params)
    out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == params


SHOW = (sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))")
argument = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


@given(st.lists(argument, min_size=20, max_size=40))
@settings(max_examples=5, deadline=None)
def test_every_value_arrives_as_exactly_one_argument(values: list[str]) -> None:
    hard = [*values, "", " ", "a b", "'", '"', "\n", ";", "; echo x", "$(x)", "*", "\\", "{run_id}", "é"]
    params = {f"k{i}": value for i, value in enumerate(hard)}
    found = build(Job(name="a", command=SHOW, style="equals"), params, PLACES, False)
    out = subprocess.run(found.argv, capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == [f"{key}={value}" for key, value in params.items()]
    found = build(Job(name="a", command=(*SHOW, *(f"{{{key}}}" for key in params))), params, PLACES, False)
    out = subprocess.run(found.argv, capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == list(params.values())


simple = (
    st.integers(0)
    | st.floats(0, allow_infinity=False)
    | st.booleans()
    | st.from_regex(r"[a-z]{3}", fullmatch=True)
)
names = st.from_regex(r"[a-z][a-z_]{3,6}", fullmatch=True)


@given(st.dictionaries(names, simple | st.dictionaries(names, simple, min_size=1, max_size=2), max_size=4))
def test_what_flags_write_is_read_back_as_parameters(params: dict[str, Any]) -> None:
    job = Job(name="a", command=("python", "train.py"))
    assert params_of(build(job, params, PLACES, False).argv) == flatten(params)


@given(st.lists(argument, min_size=1), st.dictionaries(argument, argument, max_size=3))
def test_a_command_without_known_placeholders_is_passed_on_untouched(
    command: list[str], params: dict[str, str]
) -> None:
    quiet = {key: value for key, value in params.items() if not any(f"{{{key}}}" in word for word in command)}
    job = Job(name="a", command=tuple(command), style="none")
    assert build(job, quiet, {}, False).argv == tuple(command)


def test_what_no_command_line_can_carry_is_refused() -> None:
    with pytest.raises(UsageError, match="zero byte"):
        built(("run",), {"a": "x\0y"})
    with pytest.raises(UsageError, match="'loud' is not a style"):
        built(("run",), {"a": 1}, style="loud")


def test_text_splits_as_posix_and_refuses_shell_signs() -> None:
    assert split_command('a \'b c\' "d\\"" e\\ f # g') == ("a", "b c", 'd"', "e f", "#", "g")
    for text in ("a && b", "a | b", "a > b", "", "  "):
        with pytest.raises(ValueError, match=r"shell|empty"):
            split_command(text)
