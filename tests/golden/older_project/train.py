import argparse
import json
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
given = parser.parse_args()
pathlib.Path("results").mkdir()
pathlib.Path("results/lr.txt").write_text(str(given.lr))
print(json.dumps({"step": 1, "val/accuracy": given.lr + given.seed}))
