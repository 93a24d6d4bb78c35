"""Options read from a script's source, and what its real parser makes of the words it then gets."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from declared_options import PLACES, got, settled, words, write
from hostler.errors import SpecError
from hostler.fleet import option_forms
from hostler.spec.argv import build
from hostler.spec.job import Job
from hostler.spec.parsers.declarations import declarations
from hostler.spec.project import default_project
from hostler.spec.style import Form, Style
from parser_scripts import ABSL, ARGPARSE, CASES, CLICK, CONFIGURATOR, FIRE, GETOPTS, GPT, HF, TYPER


@pytest.mark.parametrize(
    "key",
    ["amp", "cache", "drop", "ema", "use_bn", "trap", "maybe", "strict", "literal", "const", "light", "q"],
)
@pytest.mark.parametrize("value", [True, False])
def test_argparse_gets_a_boolean_in_its_own_form(tmp_path: Path, key: str, value: bool) -> None:
    write(tmp_path, train=ARGPARSE)
    assert got(tmp_path, {key: value})[key] is value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layers", [1, 2, -3]),
        ("pair", [0.5, 1.5]),
        ("tag", ["a", "b c"]),
        ("more", ["a", "b"]),
        ("commas", [1, 2]),
        ("json", [1, [2, True]]),
        ("literal", [1, True, None, "a b"]),
        ("batch_size", 3),
    ],
)
def test_argparse_gets_a_list_in_its_own_form(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=ARGPARSE)
    assert got(tmp_path, {key: value})[key] == value


def test_import_of_an_endless_name_is_no_module(tmp_path: Path) -> None:
    write(tmp_path, train=f"import {300 * 'a'}\n{ARGPARSE}")
    assert words(tmp_path, {"amp": True}) == ["--amp"]


def test_true_is_a_flag_and_false_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert words(tmp_path, {"amp": True, "lr": 1}) == ["--amp", "--lr", "1"]
    assert words(tmp_path, {"amp": False}) == []


def test_a_key_is_passed_in_the_declared_spelling(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert words(tmp_path, {"batch_size": 3}) == ["--batch-size", "3"]
    assert words(tmp_path, {"b": 3, "no_cache": True}) == ["-b", "3", "--no-cache"]
    assert words(tmp_path, {"use-bn": True}) == ["--use_bn", "true"]


def test_choices_of_capital_words_get_capitals(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert got(tmp_path, {"pick": True})["pick"] == "True"


INDIRECT = {
    "function": {
        "train": "import json\nfrom options import parse\nprint(json.dumps(vars(parse())))\n",
        "options": "import argparse\ndef parse():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--amp', action='store_true')\n    p.add_argument('--tag', action='append')\n"
        "    return p.parse_args()\n"
        "if __name__ == '__main__':\n    q = argparse.ArgumentParser()\n"
        "    q.add_argument('--amp', type=str)\n",
    },
    "group": {
        "train": "import argparse, json\np = argparse.ArgumentParser()\ng = p.add_argument_group('x')\n"
        "m = g.add_mutually_exclusive_group()\nm.add_argument('--amp', action='store_true')\n"
        "g.add_argument('--tag', action='append')\nprint(json.dumps(vars(p.parse_args())))\n",
    },
    "alias": {
        "train": "import argparse, json\np = argparse.ArgumentParser()\nadd_arg = p.add_argument\n"
        "add_arg('--amp', action='store_true')\nadd_arg('--tag', action='append')\n"
        "print(json.dumps(vars(p.parse_args())))\n",
    },
    "package": {
        "train": "import json\nimport lib.opts as opts\nprint(json.dumps(vars(opts.Options().parse())))\n",
        "lib__opts": "from .base import Base\nclass Options(Base):\n    def more(self, p):\n"
        "        p.add_argument('--amp', action='store_true')\n",
        "lib__base": "import argparse\nclass Base:\n    def parse(self):\n"
        "        p = argparse.ArgumentParser()\n        p.add_argument('--tag', action='append')\n"
        "        self.more(p)\n        return p.parse_args()\n",
    },
    "constant": {
        "train": "import argparse, json\nFLAG = 'store_true'\np = argparse.ArgumentParser()\n"
        "p.add_argument('--amp', action=FLAG)\np.add_argument('--tag', action='append')\n"
        "print(json.dumps(vars(p.parse_args())))\n",
    },
}


@pytest.mark.parametrize("how", INDIRECT)
def test_a_parser_built_elsewhere_is_read(tmp_path: Path, how: str) -> None:
    write(tmp_path, **INDIRECT[how])
    for value in (True, False):
        assert got(tmp_path, {"amp": value, "tag": ["a", "b"]}) == {"amp": value, "tag": ["a", "b"]}


def test_a_module_started_with_m_is_read(tmp_path: Path) -> None:
    write(tmp_path, lib__train=INDIRECT["group"]["train"])
    command = ("python", "-m", "lib.train")
    assert got(tmp_path, {"amp": False, "tag": ["a"]}, command=command) == {"amp": False, "tag": ["a"]}


_END = "print(json.dumps(vars(p.parse_args())))\n"
_BEGIN = "import argparse, json\np = argparse.ArgumentParser()\nsubs = p.add_subparsers(dest='verb')\n"
SUBCOMMANDS = {
    "variables": _BEGIN + "fit = subs.add_parser('fit')\nlook = subs.add_parser('look', aliases=['see'])\n"
    "group = fit.add_argument_group('x')\ngroup.add_argument('--amp', action='store_true')\n"
    "add = fit.add_argument\nadd('--tag', nargs='+')\n"
    "look.add_argument('--amp', type=str)\nlook.add_argument('--tag', action='append')\n" + _END,
    "one name": _BEGIN + "s = subs.add_parser('fit')\ns.add_argument('--amp', action='store_true')\n"
    "s.add_argument('--tag', nargs='+')\ns = subs.add_parser('see')\ns.add_argument('--amp', type=str)\n"
    "s.add_argument('--tag', action='append')\n" + _END,
    "functions": "import argparse, json\n"
    "def fit(subs):\n    own = subs.add_parser('fit')\n    shared(own)\n"
    "    own.add_argument('--tag', nargs='+')\n"
    "def shared(parser):\n    parser.add_argument('--amp', action='store_true')\n"
    "def see(subs):\n    own = subs.add_parser('see')\n    own.add_argument('--amp', type=str)\n"
    "    own.add_argument('--tag', action='append')\n"
    "p = argparse.ArgumentParser()\nsubs = p.add_subparsers(dest='verb')\nfit(subs)\nsee(subs)\n" + _END,
}


@pytest.mark.parametrize("how", SUBCOMMANDS)
def test_subcommand_of_the_command_decides_the_forms(tmp_path: Path, how: str) -> None:
    write(tmp_path, train=SUBCOMMANDS[how])
    fit, see = ("python", "train.py", "fit"), ("python", "train.py", "see")
    for value in (True, False):
        found = got(tmp_path, {"amp": value, "tag": ["a", "b"]}, command=fit)
        assert found == {"verb": "fit", "amp": value, "tag": ["a", "b"]}
    found = got(tmp_path, {"amp": True, "tag": ["a", "b"]}, command=see)
    assert found == {"verb": "see", "amp": "true", "tag": ["a", "b"]}


def test_function_for_all_parsers_counts_for_each_subcommand(tmp_path: Path) -> None:
    text = "import argparse, json\ndef shared(q):\n    q.add_argument('--tag', action='append')\n"
    text += "p = argparse.ArgumentParser()\nsubs = p.add_subparsers()\nfit = subs.add_parser('fit')\n"
    text += "see = subs.add_parser('see')\nshared(fit)\nshared(p)\n"
    write(tmp_path, train=text)
    declared = declarations(("python", "train.py", "see"), tmp_path, tmp_path)
    assert [option.names for option in declared.options] == [("--tag",)]


def test_options_of_unnamed_subcommands_stay_unknown(tmp_path: Path) -> None:
    write(tmp_path, train=SUBCOMMANDS["variables"])
    form = settled(tmp_path, {"amp": True}, command=("python", "train.py", "{verb}")).forms.of("amp")
    assert (form.booleans, form.true) == ("", None)


@pytest.mark.parametrize(
    "line",
    [
        "p.add_argument('--amp', action=choose())",
        "p.add_argument('--amp', **common)",
        "p.add_argument('--amp', action=Mine)",
        "p.add_argument('--' + 'amp', action='store_true')",
        "p.add_argument('--amp', action='store_true')\np.add_argument('--amp', type=str)",
        "other(p)",
    ],
)
def test_what_cannot_be_read_is_unknown(tmp_path: Path, line: str) -> None:
    write(tmp_path, train=f"import argparse\np = argparse.ArgumentParser()\n{line}\np.parse_args()\n")
    form = settled(tmp_path, {"amp": True}).forms.of("amp")
    assert (form.booleans, form.true, form.false, form.declared) == ("", None, None, True)


def test_reading_neither_imports_nor_runs_the_script(tmp_path: Path) -> None:
    mark = "open('ran', 'w')\n"
    files = {name: mark + text for name, text in INDIRECT["function"].items()}
    write(tmp_path, **files)
    assert words(tmp_path, {"amp": True}) == ["--amp"]
    assert not (tmp_path / "ran").exists()


def test_broken_or_absent_source_leaves_options_as_usual(tmp_path: Path) -> None:
    assert words(tmp_path, {"amp": True}) == ["--amp", "true"]
    for text in ("def (", "\0", "x" * 10):
        write(tmp_path, train=text)
        assert words(tmp_path, {"amp": True, "l": [1, 2]}) == ["--amp", "true", "--l", "1", "2"]


def test_a_surely_unknown_parameter_is_noted_and_passed(tmp_path: Path) -> None:
    write(
        tmp_path,
        train="import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n",
    )
    job = settled(tmp_path, {"lr": 1, "wd": 2})
    assert list(option_forms.lines(job)) == ["options: wd: not among the script's options"]
    assert build(job, {"lr": 1, "wd": 2}, PLACES, False).argv[2:] == ("--lr", "1", "--wd", "2")


@pytest.mark.parametrize("change", ["p.parse_known_args()", "add_more(p)", "p.parse_args(); trainer.add(p)"])
def test_a_parser_that_others_may_extend_is_not_noted(tmp_path: Path, change: str) -> None:
    write(
        tmp_path, train=f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\n{change}\n"
    )
    assert list(option_forms.lines(settled(tmp_path, {"wd": 2}))) == []


@pytest.mark.parametrize("key", ["amp", "ema", "look", "use_bn"])
@pytest.mark.parametrize("value", [True, False])
def test_click_gets_a_boolean_in_its_own_form(tmp_path: Path, key: str, value: bool) -> None:
    write(tmp_path, train=CLICK)
    assert got(tmp_path, {key: value})[key] is value


@pytest.mark.parametrize(("key", "value"), [("tags", ["a", "b"]), ("pair", [0.5, 1.5]), ("batch_size", 3)])
def test_click_gets_a_list_in_its_own_form(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=CLICK)
    assert got(tmp_path, {key: value})[key] == value


@pytest.mark.parametrize("key", ["amp", "ema", "accept", "force"])
@pytest.mark.parametrize("value", [True, False])
def test_typer_gets_a_boolean_in_its_own_form(tmp_path: Path, key: str, value: bool) -> None:
    write(tmp_path, train=TYPER)
    assert got(tmp_path, {key: value})[key] is value


@pytest.mark.parametrize(
    ("key", "value"), [("layers", [1, 2]), ("tags", ["a", "b"]), ("pair", [0.5, 1.5]), ("batch_size", 3)]
)
def test_typer_gets_a_list_in_its_own_form(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=TYPER)
    assert got(tmp_path, {key: value})[key] == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("amp", True),
        ("amp", False),
        ("ema", True),
        ("ema", False),
        ("names", ["a", "b"]),
        ("layers", [1, 2]),
        ("tag", ["a b", "c"]),
        ("lr", -0.5),
    ],
)
def test_absl_gets_its_flags_tied_by_equals(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=ABSL)
    assert got(tmp_path, {key: value})[key] == value
    assert all(word.startswith(f"--{key}=") for word in words(tmp_path, {key: value}))


def test_fire_gets_python_literals_tied_by_equals(tmp_path: Path) -> None:
    write(tmp_path, train=FIRE)
    params = {"amp": False, "layers": [1, True, "a"], "lr": 0.5, "name": "b", "digits": "12"}
    found = dict(word[2:].split("=", 1) for word in words(tmp_path, params))
    assert found["name"] == "b"
    assert {k: ast.literal_eval(v) for k, v in found.items() if k != "name"} == {
        key: value for key, value in params.items() if key != "name"
    }


@pytest.mark.skipif(not importlib.util.find_spec("transformers"), reason="transformers is not installed")
@pytest.mark.parametrize("value", [True, False])
def test_hf_argument_parser_gets_values_and_lists(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=HF)
    params = {"amp": value, "ema": value, "layers": [1, 2], "batch_size": 3}
    assert got(tmp_path, params) == params


def test_lightning_cli_gets_values_and_json_lists(tmp_path: Path) -> None:
    write(tmp_path, train="from lightning.pytorch.cli import LightningCLI\nLightningCLI()\n")
    params = {"trainer.fast": True, "layers": [1, 2]}
    assert words(tmp_path, params) == ["--trainer.fast", "true", "--layers", "[1,2]"]


@pytest.mark.parametrize("value", [True, False])
def test_a_configurator_gets_python_literals_tied_by_equals(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=GPT, configurator=CONFIGURATOR)
    params = {"compile": value, "layers": [1, 2], "dataset": "12", "lr": 0.5}
    assert got(tmp_path, params) == params


@pytest.mark.parametrize("value", [True, False])
def test_bash_getopts_gets_letters_and_repeated_lists(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=GETOPTS)
    found = got(tmp_path, {"v": value, "n": "x", "l": [1, 2], "c": [3, 4]}, command=("bash", "train.sh"))
    assert found == {"v": value, "n": "x", "l": "1 2", "c": "3 4"}


@pytest.mark.parametrize("value", [True, False])
def test_bash_case_arms_get_flags_values_and_lists(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=CASES)
    found = got(tmp_path, {"verbose": value, "name": "x", "item": [1, 2]}, command=("bash", "train.sh"))
    assert found == {"verbose": value, "name": "x", "item": "1 2"}


@pytest.mark.parametrize(
    ("params", "style", "said"),
    [
        (
            {"amp": True},
            Style(Form(booleans="value")),
            "style: booleans: value for amp, but train.py:12 declares --amp as store_true "
            "(leave booleans out, or style: {keys: {amp: {booleans: bare}}})",
        ),
        (
            {"use_bn": True},
            Style(Form(booleans="bare")),
            "style: booleans: bare for use_bn, but train.py:16 declares --use_bn with one value "
            "(leave booleans out, or style: {keys: {use_bn: {booleans: value}}})",
        ),
        (
            {"tag": ["a", "b"]},
            Style(keys={"tag": Form(lists="spaces")}),
            "style: lists: spaces for tag, but train.py:27 declares --tag with action='append' "
            "(leave lists of tag out, or say repeat)",
        ),
    ],
)
def test_a_style_against_the_parser_is_refused(
    tmp_path: Path, params: dict[str, Any], style: Style, said: str
) -> None:
    write(tmp_path, train=ARGPARSE)
    with pytest.raises(SpecError) as error:
        settled(tmp_path, params, style)
    assert str(error.value) == said


NARGS = """
import argparse, json
p = argparse.ArgumentParser()
p.add_argument("--amp", action="store_true")
p.add_argument("--layers", nargs="+", type=int)
p.add_argument("--any", nargs="*", type=int)
p.add_argument("--pair", nargs=2, type=float)
p.add_argument("--tag", action="append")
p.add_argument("--span", action="append", nargs=2, type=int)
p.add_argument("--grid", nargs="+", type=json.loads)
p.add_argument("--word")
print(json.dumps(vars(p.parse_args())))
"""
COMMA_HINT = "say how the script reads a list: style: {keys: {KEY: {lists: comma}}}, or json"
JSON_HINT = "put plain values into it, or pass it as JSON: style: {keys: {KEY: {lists: json}}}"


@pytest.mark.parametrize(
    ("params", "shown", "how", "hint"),
    [
        ({"amp": 1}, "1", "--amp as store_true", "say true or false"),
        ({"amp": "yes"}, "yes", "--amp as store_true", "say true or false"),
        ({"layers": [[1, 2], [3]]}, "[[1,2],[3]]", "--layers with nargs='+'", "put plain values into it"),
        ({"tag": ["a", ["b"]]}, '["a",["b"]]', "--tag with action='append'", JSON_HINT),
        ({"word": [["a"], ["b"]]}, '[["a"],["b"]]', "--word with one value", JSON_HINT),
        ({"word": ["a", "b"]}, '["a","b"]', "--word with one value", COMMA_HINT),
        ({"layers": []}, "[]", "--layers with nargs='+'", "give it a value, or null to leave it out"),
        ({"pair": [0.5]}, "[0.5]", "--pair with nargs=2", "give it 2 values"),
        ({"pair": [1, 2, 3]}, "[1,2,3]", "--pair with nargs=2", "give it 2 values"),
        ({"pair": 0.5}, "0.5", "--pair with nargs=2", "give it 2 values"),
        ({"span": [[1, 2], [3]]}, "[[1,2],[3]]", "--span with action='append'", "give it 2 values"),
    ],
)
def test_value_that_argparse_would_refuse_is_refused(
    tmp_path: Path, params: dict[str, Any], shown: str, how: str, hint: str
) -> None:
    write(tmp_path, train=NARGS)
    [key] = params
    line = 1 + NARGS.splitlines().index(next(x for x in NARGS.splitlines() if f'"--{key}"' in x))
    with pytest.raises(SpecError) as error:
        settled(tmp_path, params)
    said = f"{key}: {shown}, but train.py:{line} declares {how} ({hint.replace('KEY', key)})"
    assert str(error.value) == said


def test_values_that_argparse_takes_are_passed(tmp_path: Path) -> None:
    write(tmp_path, train=NARGS)
    params = {
        "amp": True, "layers": 3, "any": [], "pair": [0.5, 1], "tag": [], "span": [[1, 2], [3, 4]],
        "grid": [[1, 2], [3]],
    }  # fmt: skip
    took = {"layers": [3], "tag": None, "word": None}
    assert got(tmp_path, params | {"word": None}) == params | took


@pytest.mark.parametrize("key", ["amp", "layers"])
def test_bad_value_among_good_ones_of_a_sweep_is_found(tmp_path: Path, key: str) -> None:
    write(tmp_path, train=NARGS)
    runs = ({"amp": None, "layers": [1]}, {"amp": True, "layers": [2, 3]})
    bad = {"amp": {"amp": 0}, "layers": {"layers": []}}[key]
    job = Job(name="a", command=("python", "train.py"), runs=(*runs, bad, *runs))
    with pytest.raises(SpecError, match=f"^{key}: "):
        option_forms.settled(job, default_project(tmp_path))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"pair": [1]}, r"pair: \[1\], but train.py:10 declares --pair with 2 values \(give it 2 values\)"),
        ({"amp": 0}, r"amp: 0, but train.py:5 declares --amp as a flag \(say true or false\)"),
        (
            {"tags": [["a"]]},
            r"tags: \[\[\"a\"\]\], but train.py:9 declares --tag with multiple=True \(put plain",
        ),
    ],
)
def test_value_that_click_would_refuse_is_refused(tmp_path: Path, params: dict[str, Any], said: str) -> None:
    write(tmp_path, train=CLICK)
    with pytest.raises(SpecError, match=said):
        settled(tmp_path, params)


def test_typer_tuple_of_any_length_is_passed(tmp_path: Path) -> None:
    write(
        tmp_path,
        train=TYPER.replace(
            "pair: Tuple[float, float] = (0.0, 0.0)", "pair: Tuple[int, int, int] = (0, 0, 0)"
        ),
    )
    assert got(tmp_path, {"pair": [1, 2, 3]})["pair"] == [1, 2, 3]


def test_value_in_the_commands_own_words_is_not_refused(tmp_path: Path) -> None:
    write(tmp_path, train=NARGS)
    command = ("python", "train.py", "--pair", "{pair}", "1")
    assert got(tmp_path, {"pair": [0.5]}, command=command)["pair"] == [0.5, 1.0]


def test_style_key_that_is_nearly_a_parameter_is_refused(tmp_path: Path) -> None:
    write(tmp_path, train=NARGS)
    for key, near in (("layer", "layers"), ("lasr", "last")):
        style = Style(keys={key: Form(lists="comma")})
        with pytest.raises(SpecError) as error:
            settled(tmp_path, {"amp": True, "last": 1}, style)
        assert str(error.value) == f"style.keys: no parameter or option is {key!r} (did you mean {near!r}?)"


def test_style_key_of_another_script_is_let_through(tmp_path: Path) -> None:
    write(tmp_path, train=NARGS)
    style = Style(keys={"momentum": Form(), "span": Form(), "spam": Form()})
    assert words(tmp_path, {"amp": True}, style) == ["--amp"]


def test_a_style_that_concerns_no_value_is_not_refused(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert words(tmp_path, {"batch_size": 3}, Style(Form(booleans="bare", lists="comma"))) == [
        "--batch-size",
        "3",
    ]


def test_a_configurator_refuses_the_style_with_spaces(tmp_path: Path) -> None:
    write(tmp_path, train=GPT, configurator=CONFIGURATOR)
    with pytest.raises(SpecError, match=r"train.py reads only --lr=VALUE"):
        settled(tmp_path, {"lr": 0.1}, Style(Form(assign="space")))


def test_a_flag_that_cannot_be_false_is_refused(tmp_path: Path) -> None:
    text = "import argparse\np = argparse.ArgumentParser()\n"
    text += "p.add_argument('--amp', action='store_true', default=True)\np.parse_args()\n"
    write(tmp_path, train=text)
    with pytest.raises(
        SpecError, match=r"amp: false, but train.py:3 declares --amp as store_true with default True"
    ):
        settled(tmp_path, {"amp": False})
    assert words(tmp_path, {"amp": True}) == ["--amp"]


def test_explicit_style_stands_over_what_is_read(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    mixed = Style(Form(assign="equals"), {"commas": Form(lists="comma"), "ema": Form(booleans="bare")})
    assert words(tmp_path, {"ema": True, "commas": [1, 2], "lr": 1, "tag": ["a", "b"]}, mixed) == [
        "--ema", "--commas=1,2", "--lr=1", "--tag=a", "--tag=b",
    ]  # fmt: skip


def test_options_of_the_script_are_found_by_key_and_name(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    declared = declarations(("python", "train.py"), tmp_path, tmp_path)
    assert declared.find("learning") is None
    found = declared.find("no-cache")
    assert found and (found.form.true, found.form.false) == (("--no-cache",), ())


ONE_VALUE = """
import argparse, ast, json
p = argparse.ArgumentParser()
p.add_argument("--layers", type=str)
p.add_argument("--names", default="a b")
p.add_argument("--table")
p.add_argument("--code")
p.add_argument("--rate", type=float)
p.add_argument("--amp", type=int)
args = p.parse_args()
if args.layers:
    args.layers = [int(n) for n in args.layers.split(",")]
if args.table:
    args.table = json.loads(vars(args)["table"])
if args.code:
    args.code = ast.literal_eval(args.code)
args.names = args.names.split()
print(json.dumps(vars(args)))
"""


@pytest.mark.parametrize(
    ("key", "value"),
    [("layers", [3, 4]), ("names", ["x", "y"]), ("table", [1, [2]]), ("code", [1, True, "a b"])],
)
def test_text_that_the_script_splits_later_gets_a_list(tmp_path: Path, key: str, value: list[Any]) -> None:
    write(tmp_path, train=ONE_VALUE)
    assert got(tmp_path, {key: value})[key] == value


@pytest.mark.parametrize("value", [True, False])
def test_option_of_a_number_gets_a_boolean_as_one_or_zero(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=ONE_VALUE)
    assert got(tmp_path, {"amp": value})["amp"] == int(value)


def test_list_for_an_option_of_one_value_is_refused(tmp_path: Path) -> None:
    write(tmp_path, train=ONE_VALUE)
    with pytest.raises(
        SpecError, match=r"rate: \[1,2\], but train.py:8 declares --rate with one value"
    ) as error:
        settled(tmp_path, {"rate": [1, 2]})
    assert error.value.hint == "give it one number"
    assert words(tmp_path, {"rate": [1]}) == ["--rate", "1"]
    with pytest.raises(SpecError, match=r"style: lists: comma for rate, but train.py:8 declares --rate"):
        words(tmp_path, {"rate": [1, 2]}, Style(keys={"rate": Form(lists="comma")}))


@pytest.mark.parametrize(
    "option",
    [
        "@click.option('--amp', is_flag=True, default=True)",
    ],
)
def test_flag_of_click_that_cannot_be_false_is_refused(tmp_path: Path, option: str) -> None:
    text = f"import click\n@click.command()\n{option}\ndef main(amp):\n    print(amp)\nmain()\n"
    write(tmp_path, train=text)
    with pytest.raises(
        SpecError, match=r"amp: false, but train.py:3 declares --amp as a flag with default True"
    ):
        settled(tmp_path, {"amp": False})
    assert words(tmp_path, {"amp": True}) == []


ABSL_TEXTS = """
import json
from absl import app, flags
F = flags.FLAGS
flags.DEFINE_spaceseplist("names", [], "")
flags.DEFINE_string("layers", "", "")
flags.DEFINE_string("path", "", "")
flags.DEFINE_integer("amp", 0, "")

def main(argv):
    assert len(argv) == 1, argv
    print(json.dumps({"names": F.names, "layers": F.layers.split(","), "amp": F.amp}))

app.run(main)
"""


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [("names", ["x", "y"], ["x", "y"]), ("layers", [3, 4], ["3", "4"]), ("amp", True, 1), ("amp", False, 0)],
)
def test_absl_gets_lists_in_one_text_and_booleans_as_numbers(
    tmp_path: Path, key: str, value: Any, read: Any
) -> None:
    write(tmp_path, train=ABSL_TEXTS)
    assert got(tmp_path, {key: value})[key] == read


def test_absl_refuses_a_list_for_a_text_that_nobody_splits(tmp_path: Path) -> None:
    write(tmp_path, train=ABSL_TEXTS)
    with pytest.raises(SpecError, match=r"path: \[1,2\], but train.py:7 declares --path with DEFINE_string"):
        settled(tmp_path, {"path": [1, 2]})


@pytest.mark.parametrize(
    "head", ["import hydra\n@hydra.main(config_name='c')", "from hydra import main as m\n@m()"]
)
def test_script_of_hydra_gets_overrides(tmp_path: Path, head: str) -> None:
    write(tmp_path, train=f"{head}\ndef run(config): ...\nrun()\n")
    assert words(tmp_path, {"amp": True, "x": [3, 4]})[:2] == ["amp=true", "x=[3,4]"]
    assert words(tmp_path, {"config-name": "other"}) == ["--config-name", "other"]
