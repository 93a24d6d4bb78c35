from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.project_file import parse_project
from hostler.errors import SpecError
from hostler.spec.argv import build, with_params
from hostler.spec.files.yaml12 import load
from hostler.spec.job import Job, from_json, to_json
from hostler.spec.style import ASSIGN, BOOLEANS, LISTS, Form, Style, words


def given(style: str) -> Style:
    return parse_project(load(f"style: {style}", "hostler.yaml"), Path("/p")).forms


def argv(style: str, params: dict[str, Any], *command: str) -> list[str]:
    job = Job(name="a", command=("run", *command), forms=given(style))
    return list(build(job, params, {}, False).argv[1:])


@pytest.mark.parametrize(
    ("style", "params", "argv_"),
    [
        ("{booleans: bare}", {"amp": True, "ema": False}, ["--amp"]),
        ("{booleans: no-prefix}", {"amp": True, "ema": False}, ["--amp", "--no-ema"]),
        ("{booleans: value}", {"amp": True, "ema": False}, ["--amp", "true", "--ema", "false"]),
        ("{lists: repeat}", {"x": [1, "a b"]}, ["--x", "1", "--x", "a b"]),
        ("{lists: repeat}", {"x": [[1, 2], [3, 4]]}, ["--x", "1", "2", "--x", "3", "4"]),
        ("{lists: spaces}", {"x": [1, 2]}, ["--x", "1", "2"]),
        ("{lists: comma}", {"x": [1, 2]}, ["--x", "1,2"]),
        ("{lists: json}", {"x": [1, "a"]}, ["--x", '[1,"a"]']),
        ("{assign: space}", {"lr": 0.1}, ["--lr", "0.1"]),
        ("{assign: equals}", {"lr": 0.1, "amp": True, "x": [1]}, ["--lr=0.1", "--amp=true", "--x=[1]"]),
        ("{assign: equals, lists: repeat}", {"x": [1, 2]}, ["--x=1", "--x=2"]),
        ("{lists: repeat}", {"x": []}, []),
        ("{lists: comma}", {"x": [-1, 2]}, ["--x=-1,2"]),
    ],
)
def test_a_style_table_writes_booleans_lists_and_values(
    style: str, params: dict[str, Any], argv_: list[str]
) -> None:
    assert argv(style, params) == argv_


def test_keys_of_a_style_have_forms_of_their_own() -> None:
    style = "{booleans: bare, keys: {use-bn: {booleans: value}, m.x: {lists: comma}}}"
    params = {"amp": True, "use_bn": False, "m": {"x": [1, 2]}, "y": [1, 2]}
    assert argv(style, params) == ["--amp", "--use_bn", "false", "--m.x", "1,2", "--y", "1", "2"]


@pytest.mark.parametrize(
    ("style", "command", "argv_"),
    [
        ("{lists: comma}", ("{x}", "--x={x}"), ["1,2", "--x=1,2"]),
        ("{lists: json}", ("{x}", "--x={x}"), ["[1,2]", "--x=[1,2]"]),
        ("{lists: spaces}", ("{x}", "--x={x}"), ["1", "2", "--x=1 2"]),
        ("{lists: repeat}", ("--x", "{x}", "--y={x}"), ["--x", "1", "--x", "2", "--y=1", "--y=2"]),
        ("{lists: repeat}", ("in", "{x}"), ["in", "1", "2"]),
        ("{booleans: bare}", ("{x}", "--x={x}"), ["1", "2", "--x=[1,2]"]),
    ],
)
def test_a_list_in_the_command_is_joined_by_its_style(
    style: str, command: tuple[str, ...], argv_: list[str]
) -> None:
    assert argv(style, {"x": [1, 2]}, *command) == argv_


@pytest.mark.parametrize(
    ("style", "said"),
    [
        ("{booleans: bear}", "hostler.yaml:1: style.booleans: 'bear' is not 'bare', 'no-prefix' or 'value'"),
        (
            "{lists: x}",
            "hostler.yaml:1: style.lists: 'x' is not 'repeat', 'spaces', 'comma', 'joined' or 'json'",
        ),
        ("{assign: colon}", "hostler.yaml:1: style.assign: 'colon' is not 'space' or 'equals'"),
        ("{zzz: 1}", "hostler.yaml:1: style: no such key 'zzz' (keys: booleans, lists, assign, keys)"),
        ("\n  keys:\n    a: {lists: x}", "hostler.yaml:3: style.keys.a.lists: 'x' is not 'repeat', 'spaces'"),
        ("loud", "hostler.yaml:1: style: 'loud' is not 'flags', 'equals', 'hydra', 'json', 'env' or 'none'"),
    ],
)
def test_an_unknown_word_in_style_names_those_there_are(style: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        given(style)
    assert str(error.value).startswith(said)


def test_words_of_style_stay_valid() -> None:
    for word in ("flags", "equals", "hydra", "json", "env", "none"):
        project = parse_project(load(f"style: {word}", "hostler.yaml"), Path("/p"))
        assert (project.style, project.forms) == (word, Style())


def test_a_job_keeps_its_style_in_the_store() -> None:
    forms = Style(Form("bare", "comma", "equals")).given(
        {
            "a-b": Form("bare", option="--a-b", true=("--a-b",), false=()),
            "c": Form(literal=True, declared=False),
        }
    )
    job = Job(name="a", command=("run",), forms=forms)
    assert from_json(json.loads(json.dumps(to_json(job)))) == job
    assert to_json(replace(job, forms=Style()))["forms"] == {}


def test_an_older_spec_with_a_word_still_opens() -> None:
    record = to_json(Job(name="a", command=("run",), style="equals"))
    del record["forms"]
    assert from_json(record) == Job(name="a", command=("run",), style="equals")
    assert to_json(Job(name="a", command=("run",), forms=Style(Form("bare"))))["style"] == "flags"


@pytest.mark.parametrize("forms", [[], {"keys": []}, {"lists": 3}, {"keys": {"a": {"true": [1]}}}])
def test_a_stored_style_of_wrong_types_is_refused(forms: Any) -> None:
    record = {**to_json(Job(name="a", command=("run",))), "forms": forms}
    with pytest.raises((TypeError, ValueError, AttributeError)):
        from_json(record)


@pytest.mark.parametrize(
    ("args", "params", "changed"),
    [
        (["--no-ema", "--b", "2"], {"ema": True}, ["--ema", "--b", "2"]),
        (["--ema"], {"ema": False}, ["--no-ema"]),
        (["--b", "2"], {"amp": True}, ["--b", "2", "--amp"]),
        (["--amp"], {"amp": False}, []),
        (["--tag", "a", "--tag", "b", "c"], {"tag": ["x", "y"]}, ["--tag", "x", "--tag", "y"]),
    ],
)
def test_changed_parameters_are_written_in_their_form(
    args: list[str], params: dict[str, Any], changed: list[str]
) -> None:
    forms = Style().given(
        {
            "ema": Form("no-prefix", true=("--ema",), false=("--no-ema",)),
            "amp": Form("bare", true=("--amp",), false=()),
            "tag": Form(lists="repeat"),
        }
    )
    assert with_params(("python", "train.py", *args), params, forms) == ("python", "train.py", *changed)


def test_every_word_of_style_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scripts.md").read_text()
    for word in (*BOOLEANS, *LISTS, *ASSIGN):
        assert f"| `{word}` |" in text


def test_python_literals_are_quoted_where_they_would_be_misread() -> None:
    form = Form(literal=True, assign="equals")
    assert words("x", "12", form) == ["--x='12'"]
    assert words("x", "a,b", form) == ["--x='a,b'"]
    assert words("x", "adam", form) == ["--x=adam"]
    assert words("x", None, form) == ["--x=None"]
