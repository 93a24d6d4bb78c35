"""Folders as `clouDL_create` makes them, filled in by hand: one for each kind of search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KINDS: dict[str, tuple[Any, list[float]]] = {  # what is searched, and what three trials of it are
    "list": ({"method": "list", "data": [0.3, 0.1, 0.2]}, [0.3, 0.1, 0.2]),
    "step": ({"method": "step", "data": [0.1, 0.2]}, [0.1, 0.3, 0.5]),
    "multiple": ({"method": "multiple", "data": [0.1, 2]}, [0.1, 0.2, 0.4]),
    "uniform random": ({"method": "uniform random", "data": [0.1, 0.4]}, []),
    "range": ([0.1, 0.4], []),
}
SCRIPT = """
from clouDL.manager import Manager
from clouDL.earlystop import EarlyStopping


def run(manager):
    hyparams = manager.get_hyparams()
    manager.set_compare_goal("val_loss", "min")
    stopping = EarlyStopping(mode="min", patience=5)
    for epoch in range(manager.start_epoch(), hyparams["EPOCHS"]):
        manager.add_progress("epochs", epoch)
        loss = hyparams["LR"] + 1 / (epoch + 1)
        manager.add_progress("val_loss", loss)
        if stopping.stop(loss):
            break
        manager.save_progress({"weights": [loss]}, {"weights": [loss]})
    manager.finished({"weights": [loss]})


Manager.create_manager().hyparam_search(run)
"""
STARTUP = """
# what each VM does
export OMP_NUM_THREADS=1
mkdir -p prepared && touch prepared/done
python search.py
echo all is done
"""
QUICK = """#!/bin/bash
WORKERS=1
ARCHIVE=2
MODE=$1
PROJECT_ID=$2
BUCKET_NAME=$3
BASE="./user_files"
if [ "$MODE" == "new" ]; then
  clouDL $PROJECT_ID $BUCKET_NAME --mkbucket --archive $ARCHIVE \\
    --hyparams $BASE/hyperparameters.json --cluster $WORKERS $BASE/configs.json $BASE/user_startup.sh
elif [ "$MODE" = "analyze" ]; then
  clouDL_analyze $PROJECT_ID-$BUCKET_NAME --errs 10 --best epochs --archive epochs $ARCHIVE --yrange 0 2
fi
"""
CONFIGS = {
    "zones": ["us-central1-b", "us-central1-a"],
    "sourceImage": "projects/debian-cloud/global/images/family/debian-12",
    "diskSizeGb": "20",
    "preemptible": True,
    "name_prefix": "vm",
    "cpu_count": 2,
    "comments": ["zones are tried in order"],
}


def folder(root: Path, kind: str, *, sections: int = 1, trials: int = 3, **more: str) -> Path:
    """`user_files` in a project folder with its script; `more` are other texts for its files."""
    made = root / "user_files"
    made.mkdir(parents=True)
    search: list[Mapping[str, Any]] = [{"EPOCHS": 3, "LR": KINDS[kind][0]}]
    search += [{"EPOCHS": 3 + n} for n in range(1, sections)]
    texts = {
        "hyperparameters.json": json.dumps(
            {"iterations": trials, "hyperparameters": search, "helper": ["x"]}
        ),
        "configs.json": json.dumps(CONFIGS),
        "user_startup.sh": STARTUP,
        "quick_start.sh": QUICK,
        "access_token": "ghp_hushhush\n",
        "README.md": "# clouDL\n",
        **{name.replace("__", "."): text for name, text in more.items()},
    }
    for name, text in texts.items():
        (made / name).write_text(text)
    (root / "search.py").write_text(SCRIPT)
    return made
