"""Translates sentences with a snapshot from the store, of a run that is done or is still training.

python try.py "the small dog sees a red house" --run NAME --checkpoint last --device cpu
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from words import Recipe

Translate = Callable[[str], str]


def main() -> None:
    args = parsed()
    with tempfile.TemporaryDirectory() as room:
        translate = load(snapshot(args, Path(room)), args.device)
    failed = False
    for sentence in args.sentence:
        try:
            print(translate(sentence))
        except ValueError as error:
            failed = True
            print(f"{sentence!r}: {error}", file=sys.stderr)
    sys.exit(failed)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sentence", nargs="+")
    parser.add_argument("--run", help="name of a run (default: the newest that has a snapshot)")
    parser.add_argument(
        "--checkpoint",
        default="last",
        help="last (default); best, once the run is done; or a folder that `hostler pull` brought",
    )
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1")
    parser.add_argument("--store", help="folder or bucket (default: that of hostler.yaml)")
    return parser.parse_args()


def snapshot(args: argparse.Namespace, room: Path) -> Path:
    """The folder with the weights that were asked for."""
    if args.checkpoint not in ("last", "best"):
        return latest(Path(args.checkpoint)) or sys.exit(
            f"{args.checkpoint} holds no snapshot: hostler pull RUN --all"
        )
    store = ["--store", args.store] if args.store else []
    part = {"last": "--checkpoint", "best": "--outputs"}[args.checkpoint]
    said = ""
    for run in [args.run] if args.run else newest(store):
        pulled = hostler("pull", run, part, "--all", "--yes", "--to", str(room / run), *store)
        found = latest(room / run)
        if found and not pulled.returncode:
            print(f"[{run}, {args.checkpoint} snapshot]", file=sys.stderr)
            return found
        said = said or pulled.stderr.strip() or f"{run} has no {args.checkpoint} snapshot yet"
    sys.exit(said)


def newest(store: list[str]) -> list[str]:
    """All runs, the one that was started last first."""
    listed = hostler("status", "--json", *store)
    if listed.returncode:
        sys.exit(listed.stderr.strip())
    rows = [row for row in json.loads(listed.stdout) if row["started"]]
    if not rows:
        sys.exit("there are no runs yet: hostler run")
    return [row["id"] for row in sorted(rows, key=lambda row: -row["started"])]


def hostler(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hostler", *words], capture_output=True, text=True)


def latest(folder: Path) -> Path | None:
    """The newest whole snapshot of what was pulled, or of a part of it, or the folder itself."""
    for pattern in ("COMMIT", "step-*/COMMIT", "checkpoint/step-*/COMMIT", "outputs/best/*/COMMIT"):
        if found := sorted(folder.glob(pattern)):
            return found[-1].parent
    return None


def load(folder: Path, device: str) -> Translate:
    [state, *_] = sorted(folder.glob("state-*.json"))  # of rank 0
    [tensors, *_] = sorted(folder.glob("tensors-*.safetensors"))
    recipe = Recipe(**json.loads(state.read_text())["objects"]["recipe"])
    return {"torch": with_torch, "tensorflow": with_tensorflow}[recipe.framework](recipe, tensors, device)


def with_torch(recipe: Recipe, path: Path, device: str) -> Translate:
    import torch
    from safetensors.torch import load_file

    from train_torch import build

    model = build(recipe).to(device)
    model.load_state_dict(of_model(load_file(path, device=device)))

    def translate(sentence: str) -> str:
        [found] = model.translate(torch.tensor([recipe.source.numbers(sentence)], device=device)).tolist()
        return recipe.target.sentence(found)

    return translate


def with_tensorflow(recipe: Recipe, path: Path, device: str) -> Translate:
    import tensorflow as tf
    from safetensors.numpy import load_file

    from train_tensorflow import build

    name = device.replace("cuda", "GPU").upper()
    with tf.device(name):
        model = build(recipe)
        model.load_state_dict(of_model(load_file(path)))

    def translate(sentence: str) -> str:
        with tf.device(name):
            [found] = model.translate(tf.constant([recipe.source.numbers(sentence)])).numpy().tolist()
        return recipe.target.sentence(found)

    return translate


def of_model(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("model."): one for name, one in tensors.items() if name.startswith("model.")}


if __name__ == "__main__":
    main()
