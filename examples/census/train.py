"""Who earns more than 50,000? Gradient boosting on UCI's census table; XGBoost where it is installed.

python train.py --mode train --data adult.data
python train.py --mode evaluate --data adult.test --model model.pkl
"""

import argparse
import csv
import json
import os
import pickle
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

HERE = Path(__file__).parent
CLASS = "income"
RICH = ">50K"


def main():
    args = arguments()
    schema = json.loads((HERE / "schema.json").read_text())
    x, y = table(args.data, schema)
    if args.mode == "evaluate":
        with open(args.model, "rb") as file:
            model = pickle.load(file)  # noqa: S301
        print(json.dumps(scores(model, x, y)))
        return
    part = np.random.default_rng(args.seed).permutation(len(x))
    held, kept = part[: len(x) // 5], part[len(x) // 5 :]
    model = booster(args).fit(x[kept], y[kept])
    found = scores(model, x[held], y[held])
    print(json.dumps({"train_accuracy": scores(model, x[kept], y[kept])["accuracy"], **found}))
    folder = Path(os.environ.get("HOSTLER_OUTPUT_DIR", "."))  # kept with the run; by hand, here
    with open(folder / "model.pkl", "wb") as file:
        pickle.dump(model, file)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["train", "evaluate"], default="train")
    sample = str(HERE / "adult.sample.csv")
    parser.add_argument("--data", default=sample, help="adult.data or adult.test of UCI")
    parser.add_argument("--model", default="model.pkl", help="of --mode evaluate")
    parser.add_argument("--library", choices=["auto", "xgboost", "sklearn"], default="auto")
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def table(path, schema):
    """Numbers of a census table: a column that is text becomes its place among the values of the schema."""
    rows = []
    with open(path, newline="") as file:
        for row in csv.reader(file, skipinitialspace=True):
            if len(row) == len(schema):
                rows.append(row)
    if not rows:
        raise SystemExit(f"{path} has no rows of {len(schema)} columns: is it UCI's adult.data?")
    columns = []
    for (name, values), cells in zip(schema.items(), zip(*rows, strict=True), strict=True):
        if name == CLASS:
            target = np.array([cell.rstrip(".") == RICH for cell in cells], dtype=int)  # adult.test has dots
        elif values is None:
            columns.append([float(cell) if cell != "?" else np.nan for cell in cells])
        else:
            places = {value: n for n, value in enumerate(values)}
            columns.append([places.get(cell, np.nan) for cell in cells])
    return np.array(columns, dtype=float).T, target


def booster(args):
    given = {"learning_rate": args.learning_rate, "max_depth": args.depth, "random_state": args.seed}
    if args.library != "sklearn":
        try:
            from xgboost import XGBClassifier

            return XGBClassifier(n_estimators=args.rounds, **given)
        except ModuleNotFoundError:
            if args.library == "xgboost":
                raise
    return HistGradientBoostingClassifier(max_iter=args.rounds, **given)


def scores(model, x, y):
    likely = model.predict_proba(x)[:, 1]
    right = (likely > 0.5) == (y == 1)
    loss = -np.log(np.clip(np.where(y == 1, likely, 1 - likely), 1e-9, 1)).mean()
    return {"accuracy": float(right.mean()), "loss": float(loss)}


if __name__ == "__main__":
    main()
