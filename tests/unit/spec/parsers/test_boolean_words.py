"""Words that parsers have for true and false besides these two, defaults that fix a flag, and places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_declarations import got, words, write

from hostler.errors import SpecError

SCRIPT = """
import argparse, json
p = argparse.ArgumentParser()
p.add_argument("--switch", choices=["on", "off"])
p.add_argument("--answer", choices=("yes", "no"), default="no")
p.add_argument("--capital", choices=["TRUE", "FALSE"])
p.add_argument("--digit", choices=["0", "1"])
p.add_argument("--number", type=lambda text: bool(int(text)))
p.add_argument("--letter", type=lambda text: {"y": True, "n": False}[text])
p.add_argument("--lower", type=lambda text: {"yes": True, "no": False}[text.lower()])
p.add_argument("--later", default=None)
p.add_argument("--usual", default="True")
p.add_argument("--any", type=lambda text: text.lower() in ("yes", "true", "t", "1"))
p.add_argument("--apart", type=lambda text: text.split())
p.add_argument("--layers", nargs="+", type=int, choices=[1, [2], None], default=[1, [2]])
args = p.parse_args()
assert args.layers in ([1, [2]], [[1]]) and args.layers != {}
args.later = args.later == "True" if args.later else None
args.usual = eval(args.usual)
print(json.dumps(vars(args)))
"""
KEYS = ("switch", "answer", "capital", "digit", "number", "letter", "lower", "later", "usual", "any")
TEXTS = {"switch": ("on", "off"), "answer": ("yes", "no"), "capital": ("TRUE", "FALSE"), "digit": ("1", "0")}


@pytest.mark.parametrize("value", [True, False])
def test_boolean_gets_the_words_that_its_parser_knows(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=SCRIPT)
    found = got(tmp_path, {**dict.fromkeys(KEYS, value), "apart": ["a", "b"]})
    wanted = {key: TEXTS[key][not value] if key in TEXTS else value for key in KEYS}
    assert found == {**wanted, "apart": ["a", "b"], "layers": [1, [2]]}


BY_DEFAULT = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--amp", action="store_true")
p.add_argument("--ema", action="store_true")
p.add_argument("--no-ema", action="store_false", dest="ema")
p.set_defaults(amp=True, ema=True)
"""


def test_flag_that_set_defaults_fixes_is_refused(tmp_path: Path) -> None:
    write(tmp_path, train=BY_DEFAULT)
    assert words(tmp_path, {"amp": True, "ema": False}) == ["--amp", "--no-ema"]
    with pytest.raises(SpecError, match="store_true with default True, which no option can change"):
        words(tmp_path, {"amp": False})


PLACED = {
    "argparse": "import argparse\np = argparse.ArgumentParser()\n"
    "p.add_argument('data')\np.add_argument('--lr')\n",
    "click": "import click\n@click.command()\n"
    "@click.argument('data')\n@click.option('--lr')\ndef main(): ...\n",
    "typer": "import typer\ndef main(data: str, lr: float = 0.1): ...\ntyper.run(main)\n",
    "typer with Argument": "import typer\nfrom typing import Annotated\n"
    "def main(data: Annotated[str, typer.Argument()] = 'a', lr: float = 0.1): ...\ntyper.run(main)\n",
}


@pytest.mark.parametrize("library", PLACED)
def test_parameter_by_its_place_is_refused_with_the_command(tmp_path: Path, library: str) -> None:
    write(tmp_path, train=PLACED[library])
    with pytest.raises(SpecError) as refused:
        words(tmp_path, {"data": "cifar", "lr": 1})
    assert "takes it by its place" in str(refused.value)
    assert "python train.py {data}" in str(refused.value.hint)
    given: dict[str, Any] = {"data": "cifar", "lr": 1}
    command = ("python", "train.py", "{data}")
    assert words(tmp_path, given, command=command) == ["--lr", "1"]
    assert words(tmp_path, {"data": None, "lr": 1}) == ["--lr", "1"]


@pytest.mark.parametrize(
    "command",
    [
        "python3.11 train.py",
        "/usr/bin/python3.12 train.py",
        "uv run train.py",
        "conda run -n lab python train.py",
        "env OMP_NUM_THREADS=1 SETUP=a.sh python train.py",
        "python -m torch.distributed.run --nproc_per_node 2 train.py",
        "torchrun --nproc_per_node 2 train.py",
    ],
)
def test_script_behind_any_launcher_is_read(tmp_path: Path, command: str) -> None:
    write(tmp_path, train=BY_DEFAULT)
    assert words(tmp_path, {"ema": False}, command=tuple(command.split())) == ["--no-ema"]
