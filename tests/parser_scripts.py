"""Scripts with the parsers that people use, unmodified; each prints as JSON what it got."""

from __future__ import annotations

ARGPARSE = """
import argparse, json

def str2bool(v):
    if v.lower() in ("yes", "true", "1"):
        return True
    if v.lower() in ("no", "false", "0"):
        return False
    raise argparse.ArgumentTypeError(v)

p = argparse.ArgumentParser()
p.add_argument("--amp", action="store_true")
p.add_argument("--no-cache", dest="cache", action="store_false")
p.add_argument("--drop", action="store_false")
p.add_argument("--ema", action=argparse.BooleanOptionalAction, default=True)
p.add_argument("--use_bn", type=str2bool, default=None)
p.add_argument("--trap", type=bool, default=None)
p.add_argument("--maybe", nargs="?", const=True, type=str2bool, default=None)
p.add_argument("--strict", type=lambda s: {"True": True, "False": False}[s], default=None)
p.add_argument("--literal", type=eval, default=None)
p.add_argument("--pick", choices=["True", "False"], default=None)
p.add_argument("--const", action="store_const", const=True, default=False)
p.add_argument("--on", dest="light", action="store_true")
p.add_argument("--off", dest="light", action="store_false")
p.add_argument("--layers", nargs="+", type=int)
p.add_argument("--pair", nargs=2, type=float)
p.add_argument("--tag", action="append")
p.add_argument("--more", action="extend", nargs="+")
p.add_argument("--commas", type=lambda s: [int(x) for x in s.split(",")])
p.add_argument("--json", type=json.loads)
p.add_argument("--batch-size", "-b", type=int)
p.add_argument("-q", action="store_true")
print(json.dumps(vars(p.parse_args())))
"""

CLICK = """
import click, json

@click.command()
@click.option("--amp", is_flag=True)
@click.option("--ema/--no-ema", default=True)
@click.option("--light/--dark", "look", default=None)
@click.option("--use-bn", type=bool, default=None)
@click.option("--tag", "-t", "tags", multiple=True)
@click.option("--pair", nargs=2, type=float)
@click.option("--batch-size", type=int)
def main(**given):
    print(json.dumps(given))

main()
"""

TYPER = """
import json
from typing import Annotated, List, Optional, Tuple
import typer

app = typer.Typer()

@app.command()
def main(
    amp: bool = False,
    ema: Optional[bool] = None,
    accept: bool = typer.Option(False, "--accept/--reject"),
    force: Annotated[bool, typer.Option("--force")] = False,
    layers: List[int] = typer.Option([]),
    tags: Annotated[Optional[List[str]], typer.Option("--tag")] = None,
    pair: Tuple[float, float] = (0.0, 0.0),
    batch_size: int = 1,
):
    print(json.dumps(locals()))

app()
"""

ABSL = """
import json
from absl import app, flags

flags.DEFINE_bool("amp", None, "")
flags.DEFINE_boolean("ema", True, "")
flags.DEFINE_list("names", [], "")
flags.DEFINE_multi_integer("layers", [], "")
flags.DEFINE_multi_string("tag", [], "")
flags.DEFINE_float("lr", 0.1, "")
F = flags.FLAGS

def main(argv):
    assert len(argv) == 1, argv
    print(json.dumps({k: F[k].value for k in ("amp", "ema", "names", "layers", "tag", "lr")}))

app.run(main)
"""

FIRE = """
import fire, json

def main(amp=None, layers=(), lr=0.1):
    print(json.dumps({"amp": amp, "layers": layers, "lr": lr}))

fire.Fire(main)
"""

HF = """
import json
from dataclasses import dataclass, field, asdict
from typing import List, Optional
from transformers import HfArgumentParser

@dataclass
class Own:
    amp: bool = False
    ema: bool = True
    layers: List[int] = field(default_factory=list)
    batch_size: int = 1

print(json.dumps(asdict(HfArgumentParser(Own).parse_args_into_dataclasses()[0])))
"""

CONFIGURATOR = """
import sys
from ast import literal_eval
for arg in sys.argv[1:]:
    if '=' not in arg:
        assert not arg.startswith('--')
        exec(open(arg).read())
    else:
        assert arg.startswith('--')
        key, val = arg.split('=')
        key = key[2:]
        if key in globals():
            try:
                attempt = literal_eval(val)
            except (SyntaxError, ValueError):
                attempt = val
            assert type(attempt) == type(globals()[key])
            globals()[key] = attempt
        else:
            raise ValueError(f"Unknown config key: {key}")
"""

GPT = """
import json
compile = True
layers = [0]
dataset = 'a'
lr = 0.1
keys = ['compile', 'layers', 'dataset', 'lr']
exec(open('configurator.py').read())
print(json.dumps({k: globals()[k] for k in keys}))
"""

GETOPTS = """#!/bin/bash
V=false; L=(); C=()
while getopts "vn:l:c:" opt; do
  case $opt in
    v) V=true;;
    n) N=$OPTARG;;
    l) L+=("$OPTARG");;
    c) IFS=, read -ra C <<< "$OPTARG";;
  esac
done
printf '{"v": %s, "n": "%s", "l": "%s", "c": "%s"}\\n' "$V" "$N" "${L[*]}" "${C[*]}"
"""

CASES = """#!/bin/bash
V=false; L=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -v|--verbose) V=true; shift;;
    --item) L+=("$2"); shift 2;;
    --name=*) N="${1#*=}"; shift;;
    *) echo "unknown $1" >&2; exit 2;;
  esac
done
printf '{"verbose": %s, "name": "%s", "item": "%s"}\\n' "$V" "$N" "${L[*]}"
"""

# Parsers that nobody can read from the source: only their usage errors tell what they want.
HIDDEN_CLICK = """
import importlib, json
click = importlib.import_module("click")

@click.command()
def main(**given):
    print(json.dumps(given))

main.params += [click.Option(["--" + name], is_flag=True) for name in ("amp", "ema")]
main.params.append(click.Option(["--" + "tag"], multiple=True))
main()
"""

HIDDEN_TYPER = """
import importlib
typer = importlib.import_module("typer")
head = "import json, typing\\ndef main(amp: bool = False, ema: bool = False, tag: typing.List[str] = []):"
exec(head + " print(json.dumps(locals()))")
typer.run(globals()["main"])
"""

HIDDEN_ABSL = """
import importlib, json
app, flags = (importlib.import_module("absl." + name) for name in ("app", "flags"))
for name in ("amp", "ema"):
    getattr(flags, "DEFINE_" + "bool")(name, None, "")
getattr(flags, "DEFINE_" + "list")("tag", None, "")
F = flags.FLAGS

def main(argv):
    if len(argv) > 1:
        raise app.UsageError("Too many command-line arguments.")
    print(json.dumps({k: F[k].value for k in ("amp", "ema")}))

app.run(main)
"""

HIDDEN_FIRE = """
import importlib, json

def main(layers=(), lr=0.1):
    print(json.dumps({"layers": layers, "lr": lr}))

getattr(importlib.import_module("fire"), "Fi" + "re")(main)
"""
