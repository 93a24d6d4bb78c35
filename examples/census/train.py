"""Who earns more than 50,000? Gradient boosting on UCI's census table; XGBoost where it is installed.

python train.py --mode train --census-data-path gs://my-bucket/adult.data --cv-iterations 10
python train.py --mode evaluate --census-data-path adult.test --model-output-path gs://my-bucket/models
"""

import argparse
import csv
import io
import json
import os
import pickle
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_validate

from hostler.store import NotFound, open_store

HERE = Path(__file__).parent
CLASS = "income"
RICH = ">50K"
FOLDS = 3


def main():
    args = arguments()
    schema = json.loads((HERE / "schema.json").read_text())
    x, y = table(args.census_data_path, schema)
    if args.mode == "evaluate":
        place = newest(args.model_output_path)
        model = pickle.loads(read(place))  # noqa: S301
        print(json.dumps(scores(model, x, y)))
        return
    model = searched(args, x, y) if args.cv_iterations else trained(args, x, y)
    print("model:", leave(args.model_output_path, pickle.dumps(model)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["train", "evaluate"], default="train")
    sample = str(HERE / "adult.sample.csv")
    parser.add_argument(
        "--census-data-path", default=sample, help="adult.data or adult.test: a file or gs://…"
    )
    kept = os.environ.get("HOSTLER_OUTPUT_DIR", ".")  # kept with the run; by hand, here
    parser.add_argument(
        "--model-output-path", default=kept, help="a folder or gs://…, for census-<TIMESTAMP>"
    )
    parser.add_argument("--cv-iterations", type=int, default=0, help="settings to draw and cross-validate")
    parser.add_argument("--library", choices=["auto", "xgboost", "sklearn"], default="auto")
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def trained(args, x, y):
    """A model with the settings that were given; a fifth of the table is held out to judge it."""
    part = np.random.default_rng(args.seed).permutation(len(x))
    held, kept = part[: len(x) // 5], part[len(x) // 5 :]
    model = booster(args, args.learning_rate, args.rounds, args.depth).fit(x[kept], y[kept])
    found = scores(model, x[held], y[held])
    print(json.dumps({"train_accuracy": scores(model, x[kept], y[kept])["accuracy"], **found}))
    return model


def searched(args, x, y):
    """The best of so many drawn settings by cross-validation, trained on the whole table."""
    chance, best = np.random.default_rng(args.seed), (-1.0, None)
    for step in range(1, args.cv_iterations + 1):
        drawn = (
            float(10 ** chance.uniform(-2, -0.3)),
            int(chance.integers(10, 61)),
            int(chance.integers(2, 7)),
        )
        found = cross_validate(booster(args, *drawn), x, y, cv=FOLDS, scoring=["accuracy", "neg_log_loss"])
        accuracy = float(found["test_accuracy"].mean())
        best = max(best, (accuracy, drawn), key=lambda pair: pair[0])
        said = dict(zip(("learning_rate", "rounds", "depth"), drawn, strict=True))
        loss = -float(found["test_neg_log_loss"].mean())
        line = {"step": step, "cv_accuracy": accuracy, "loss": loss, "accuracy": best[0], **said}
        print(json.dumps(line), flush=True)
    return booster(args, *best[1]).fit(x, y)


def table(path, schema):
    """Numbers of a census table: a column that is text becomes its place among the values of the schema."""
    rows = []
    for row in csv.reader(io.StringIO(read(path).decode(), newline=""), skipinitialspace=True):
        if len(row) == len(schema):
            rows.append(row)
    if not rows:
        raise SystemExit(f"{path} has no rows of {len(schema)} columns: is it UCI's adult.data?")
    columns = []
    for (name, values), cells in zip(schema.items(), zip(*rows, strict=True), strict=True):
        if name == CLASS:
            target = np.array([cell.rstrip(".") == RICH for cell in cells], dtype=int)  # adult.test has dots
        elif values is None:
            try:
                columns.append([float(cell) if cell != "?" else np.nan for cell in cells])
            except ValueError as error:
                raise SystemExit(f"{path}, column {name}: {error}; is it UCI's adult.data?") from None
        else:
            places = {value: n for n, value in enumerate(values)}
            columns.append([places.get(cell, np.nan) for cell in cells])
    return np.array(columns, dtype=float).T, target


def booster(args, learning_rate, rounds, depth):
    given = {"learning_rate": learning_rate, "max_depth": depth, "random_state": args.seed}
    if args.library != "sklearn":
        try:
            from xgboost import XGBClassifier

            return XGBClassifier(n_estimators=rounds, **given)
        except ModuleNotFoundError:
            if args.library == "xgboost":
                raise
    return HistGradientBoostingClassifier(max_iter=rounds, **given)


def scores(model, x, y):
    likely = model.predict_proba(x)[:, 1]
    right = (likely > 0.5) == (y == 1)
    loss = -np.log(np.clip(np.where(y == 1, likely, 1 - likely), 1e-9, 1)).mean()
    return {"accuracy": float(right.mean()), "loss": float(loss)}


def read(path):
    """Bytes of a file, here or in a bucket."""
    folder, _, name = path.rpartition("/")
    try:
        if "://" in path:
            return open_store(folder).get(name).data
        return Path(path).read_bytes()
    except (NotFound, FileNotFoundError):
        raise SystemExit(f"there is no {path}") from None


def leave(folder, data):
    """Write census-<TIMESTAMP> into a folder or a bucket, whole or not at all; returns its path."""
    name = f"census-{datetime.now(timezone.utc):%Y%m%d_%H%M%S}"
    if "://" not in folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        unfinished = Path(folder, f".{name}.part")
        unfinished.write_bytes(data)
        unfinished.rename(Path(folder, name))
    else:
        open_store(folder).put(name, data)
    return f"{folder.rstrip('/')}/{name}"


def newest(folder):
    """Path of the model that was left last; names are in the order of time."""
    if "://" in folder:
        names = [entry.key for entry in open_store(folder).list("census-")]
    else:
        names = [path.name for path in Path(folder).glob("census-*")]
    if not names:
        raise SystemExit(f"{folder} has no census-<TIMESTAMP>: train first, or name --model-output-path")
    return f"{folder.rstrip('/')}/{max(names)}"


if __name__ == "__main__":
    main()
