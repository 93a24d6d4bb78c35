"""Trainings as people have them, with the parsers and libraries that they use; none knows hostler.

With `amp` they are slow enough to be killed; the numbers are the same without.
"""

from __future__ import annotations

from pathlib import Path

from script_walk import Script, number_in

EPOCHS = 6

# The training of the scripts below that differ by their parser alone.
MODEL = f"""
import json, os, time

def fit(folder, amp, layers, resume=None):
    os.makedirs("results", exist_ok=True)
    with open("results/config.json", "w") as file:
        json.dump({{"amp": amp, "layers": list(layers)}}, file)
    weight, done = 4.0, 0
    if resume:
        with open(resume) as file:
            state = json.load(file)
        weight, done = state["weight"], state["epoch"]
        print(f"resumed from epoch {{done}}")
    with open("results/history.csv", "a") as history:
        for epoch in range(done + 1, {EPOCHS} + 1):
            time.sleep(0.8 if amp else 0.0)
            weight *= 0.8
            print(f"epoch {{epoch}} | loss={{weight ** 2:.6f}}")
            history.write(f"{{epoch}},{{weight}}\\n")
            with open(os.path.join(folder, "last.json"), "w") as file:
                json.dump({{"weight": weight, "epoch": epoch}}, file)
"""

ARGPARSE = """
import argparse
from model import fit

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--resume")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--layers", nargs="+", type=int, default=[1])
args = parser.parse_args()
fit(args.out, args.amp, args.layers, args.resume)
"""

CLICK = """
import click
from model import fit

@click.command()
@click.option("--out", type=click.Path(), required=True)
@click.option("--resume", type=click.Path(exists=True))
@click.option("--amp/--no-amp", default=True)
@click.option("--layers", multiple=True, type=int)
def main(out, resume, amp, layers):
    fit(out, amp, layers, resume)

if __name__ == "__main__":
    main()
"""

TYPER = """
from pathlib import Path
from typing import List, Optional
import typer
from model import fit

def main(out: Path, resume: Optional[Path] = None, amp: bool = True, layers: List[int] = typer.Option([])):
    fit(out, amp, layers, resume)

if __name__ == "__main__":
    typer.run(main)
"""

ABSL = """
from absl import app, flags
from model import fit

FLAGS = flags.FLAGS
flags.DEFINE_string("workdir", None, "Where checkpoints go.", required=True)
flags.DEFINE_string("resume", None, "A checkpoint to go on from.")
flags.DEFINE_bool("amp", True, "Mixed precision.")
flags.DEFINE_list("layers", ["1"], "Widths.")

def main(argv):
    fit(FLAGS.workdir, FLAGS.amp, [int(width) for width in FLAGS.layers], FLAGS.resume)

if __name__ == "__main__":
    app.run(main)
"""

FIRE = """
import fire
from model import fit

def train(out, amp=True, layers=(1,), resume=None):
    assert isinstance(amp, bool), amp
    fit(out, amp, layers, resume)

if __name__ == "__main__":
    fire.Fire(train)
"""

HYDRA = """
import hydra
from omegaconf import DictConfig
from model import fit

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config: DictConfig):
    fit(config.out, config.amp, config.layers, config.resume)

if __name__ == "__main__":
    main()
"""
HYDRA_CONFIG = "out: ???\nresume: null\namp: true\nlayers: [1]\n"

BASH = f"""#!/bin/bash
set -e
amp=false; layers=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --amp) amp=true; shift;;
    --layers) layers+=("$2"); shift 2;;
    --out) out=$2; shift 2;;
    *) echo "unknown option $1" >&2; exit 2;;
  esac
done
mkdir -p results
printf '{{"amp": %s, "layers": [%s]}}\\n' "$amp" "$(IFS=,; echo "${{layers[*]}}")" > results/config.json
epoch=0; weight=4000
if [[ -f $out/state ]]; then
  read -r epoch weight < "$out/state"
  echo "resumed from epoch $epoch"
fi
while [[ $epoch -lt {EPOCHS} ]]; do
  if $amp; then sleep 0.8; fi
  epoch=$((epoch + 1)); weight=$((weight * 4 / 5))
  echo "epoch $epoch loss: $((weight / 1000)).$(printf %03d $((weight % 1000)))"
  echo "$epoch,$weight" >> results/history.csv
  echo "$epoch $weight" > "$out/state.new" && mv "$out/state.new" "$out/state"
done
"""


def _parsed(script: str, command: str, resume: str, **more: object) -> Script:
    files = {"train.py": script, "model.py": MODEL, "conf/config.yaml": HYDRA_CONFIG}
    sweep = f"command: python train.py {command}\nresume: {resume}\n"
    given: dict[str, object] = {"metric": "loss", "steps": EPOCHS, "saved": number_in("last.json", "epoch")}
    return Script(files, sweep, **{**given, **more})  # type: ignore[arg-type]


def _state(folder: Path) -> int:
    """Epochs that the file of the bash script has."""
    try:
        return int((folder / "state").read_text().split()[0])
    except (OSError, IndexError):
        return 0


_LAST = "{checkpoint_dir}/last.json"
PARSERS = {
    "argparse": _parsed(
        ARGPARSE, "--out {checkpoint_dir}", f"--resume {_LAST}", lists=((3, 4), (5,), (6, 7, 8))
    ),
    "click": _parsed(CLICK, "--out {checkpoint_dir}", f"--resume {_LAST}"),
    "typer": _parsed(TYPER, "{checkpoint_dir}", f"--resume {_LAST}"),
    "absl": _parsed(ABSL, "--workdir={checkpoint_dir}", f"--resume={_LAST}"),
    "fire": _parsed(
        FIRE, "--out {checkpoint_dir}", f"\n  - --resume {{checkpoint_dir}}/best.json\n  - --resume {_LAST}"
    ),
    "hydra": _parsed(HYDRA, "out={checkpoint_dir}", f"resume={_LAST}"),
    "bash": Script(
        {"train.sh": BASH}, "command: bash train.sh --out {checkpoint_dir}\n", "loss", EPOCHS, saved=_state
    ),
}
