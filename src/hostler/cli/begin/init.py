"""`hostler init`: the files of a project, written into a folder; none that is there is touched."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import click
import yaml

from hostler.backends.fleet_files import Section
from hostler.backends.project_file import load_project
from hostler.cli.begin import fleet_sections
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask_text
from hostler.errors import MachineError, UsageError
from hostler.spec.argv import split_command
from hostler.spec.project import NAMES
from hostler.spec.script import INTERPRETERS
from hostler.store.registry import is_folder, open_store
from hostler.train import copied

STORE = ".hostler"
SMALLER = ("err", "mse", "rmse", "mae", "nll", "ppl", "perplexity", "wer", "cer", "fid", "logloss")


def command(folder: Path, template: str | None, fleets: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Write hostler.yaml, sweep.yaml, setup.sh and a README into a folder; nothing is overwritten."""
    folder = folder.absolute()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="name a folder")
    sections = fleet_sections.wanted(fleets)
    path = next((folder / name for name in NAMES if (folder / name).exists()), None)
    if sections and path:
        return _add_fleets(path, sections, as_json)
    found = [] if sections else fleet_sections.offered()
    name = ask_text("Name", folder.name or "project", yes=yes)
    texts = _of_trainer(name, yes=yes) if template else _of_script(folder, name, yes=yes)
    texts["hostler.yaml"] += fleet_sections.block(sections or found, active=bool(sections))
    written = _write(folder, texts)
    if "hostler.yaml" in written:
        load_project(folder / "hostler.yaml")
    else:
        found = []
    _report(folder, list(texts), written, as_json, "base_lr=0.1" if template else "lr=0.1", sections, found)
    return 0


def _add_fleets(path: Path, sections: list[Section], as_json: bool) -> int:
    """Add fleets to a project file that is there; print those that cannot be added without changing it."""
    left = fleet_sections.add(path, sections)
    added = [section for section in sections if section not in left]
    if as_json:
        by_hand = {section.fleet: section.text for section in left}
        output.print_json(
            {"file": str(path), "added": [section.fleet for section in added], "by_hand": by_hand}
        )
        return 0
    for one in left:
        click.echo(f"put this below `fleets:` of {path}, which cannot be edited safely:\n\n{one.text}")
    if added:
        click.echo(f"added to {path}:")
        _tell_fleets(added, load_project(path).store)
    return 0


def _tell_fleets(sections: list[Section], store: str | None) -> None:
    for section in sections:
        click.echo(
            f"  fleet {section.fleet}" + (f", filled in from {section.found}" if section.found else "")
        )
        if section.to_fill_in:
            click.echo(f"    still to fill in: {', '.join(section.to_fill_in)}")
        if is_folder(store or STORE) and not is_folder(section.store):
            click.echo(f"    its workers do not reach a folder: set store: {section.store}, or one like it")
    click.echo("  hostler doctor checks them")


def _of_script(folder: Path, name: str, *, yes: bool) -> dict[str, str]:
    script = _asked_command(_guess(folder), yes=yes)
    metric = ask_text("Metric to look at (empty: none)", "", yes=yes)
    return {
        "hostler.yaml": _project(name, script, metric, _asked_store(yes=yes)),
        "sweep.yaml": _sweep(name, metric),
        "setup.sh": SETUP,
        "README.md": _readme(name),
    }


def _of_trainer(name: str, *, yes: bool) -> dict[str, str]:
    project = _project(name, TRAINER_COMMAND, TRAINER_METRIC, _asked_store(yes=yes))
    return {"hostler.yaml": project, "setup.sh": SETUP, **copied.texts(name)}


def _guess(folder: Path) -> str:
    """The script in the folder, or the usual name."""
    scripts = sorted(path.name for path in folder.glob("*.py")) if folder.is_dir() else []
    likely = [name for name in ("train.py", "main.py") if name in scripts] or scripts or ["train.py"]
    return shlex.join([INTERPRETERS[".py"], likely[0]])


def _asked_command(guess: str, *, yes: bool) -> str:
    text = ask_text("Command", guess, yes=yes)
    try:
        split_command(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", hint=f"like: {guess}") from None
    return text


def _asked_store(*, yes: bool) -> str:
    text = ask_text("Store (a folder, s3://bucket/prefix, gs://…)", STORE, yes=yes)
    open_store(text)  # refuses what is no store; writes nothing
    return text


def _project(name: str, script: str, metric: str, store: str) -> str:
    looked_at = {"metric": metric, "goal": goal_of(metric)} if metric else {}
    head = {"name": name, "command": script, "store": store} | looked_at
    return f"""\
{_yaml(head)}{"" if metric else "# metric: val/accuracy              # what `best` goes by; goal: max or min"}
# resume: --resume {{checkpoint_dir}}/last.pt   # added from the second attempt on
# setup: bash setup.sh                # once per machine and content
# python: {{requirements: requirements.txt}}
# env: {{OMP_NUM_THREADS: 4}}
# secrets: [WANDB_API_KEY]            # names only; the values stay in your environment
# resources: {{gpus: 1, cpus: 4, memory: 16GB}}
# limits: {{time: 6h, hang: 30m}}
# checkpoint: {{every: 5m, keep: 2}}
# data: {{train: data/}}                # at $HOSTLER_DATA/train; {{path: data/, at: data}}: also there
# outputs: [results/]                 # kept however large; what else the script writes here: up to 1 GB
"""


def goal_of(metric: str) -> str:
    """The likely goal, max or min, of a metric of that name. Pure."""
    words = re.split(r"[^a-z]+", metric.lower())
    return "min" if any(word in SMALLER or word.endswith(("loss", "error")) for word in words) else "max"


def _objective(metric: str) -> dict[str, object]:
    return {"metric": {"name": metric, "goal": goal_of(metric)}} if metric else {}


def _sweep(name: str, metric: str) -> str:
    head = _yaml({"name": f"{name}-search"} | _objective(metric))
    return f"""\
{head}method: grid                          # or random, tpe, gp, cmaes
parameters:
  lr: [0.1, 0.01, 0.001]              # or {{min: 1e-5, max: 1e-1, log: true}}
  seed: [0, 1]                        # keys are what your command takes: --lr 0.1 --seed 0
"""


SETUP = """\
#!/usr/bin/env bash
# Runs once per machine and content, in a copy of the project, before its first run there,
# if hostler.yaml says `setup: bash setup.sh`.
set -euo pipefail
"""


def _readme(name: str) -> str:
    return f"""\
# {" ".join(name.split())}

    hostler run lr=0.1          run the command of hostler.yaml with a parameter
    hostler sweep sweep.yaml    run every configuration of that file
    hostler status              what runs, what ended
    hostler logs -f NAME        what it prints
    hostler stop NAME           save and end; hostler resume NAME goes on

A run finds its parameters as `--key value`, writes checkpoints to `$HOSTLER_CHECKPOINT_DIR` (they come
back after an interruption) and results to `$HOSTLER_OUTPUT_DIR` (`hostler pull NAME` brings them here).
"""


def _yaml(table: Mapping[str, object]) -> str:
    text: str = yaml.safe_dump(table, sort_keys=False, allow_unicode=True, width=1000)
    return text


def _write(folder: Path, texts: dict[str, str]) -> list[str]:
    """Write the files that do not exist yet; returns them."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [name for name in NAMES if (folder / name).exists()]
        for name, text in texts.items():
            if name in NAMES and others:
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(folder / name, "x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                continue
            written.append(name)
    except OSError as error:
        raise MachineError(f"{error.filename}: {error.strerror}", hint="name another folder") from error
    return written


def _report(
    folder: Path,
    names: list[str],
    written: list[str],
    as_json: bool,
    like: str,
    sections: list[Section],
    found: list[Section],
) -> None:
    kept = [name for name in names if name not in written]
    if as_json:
        output.print_json(
            {
                "folder": str(folder),
                "written": written,
                "kept": kept,
                "fleets": [section.fleet for section in sections],
                "found": [section.fleet for section in found],
            }
        )
        return
    click.echo(f"written in {folder}: {_short(written) or 'nothing'}")
    if kept:
        click.echo(f"kept as they were: {_short(kept)}")
    if sections:
        _tell_fleets(sections, load_project(folder / "hostler.yaml").store)
    for one in found:
        click.echo(f"found {one.found}: fleet {one.fleet} is in hostler.yaml, switched off by #")
    go = "" if folder == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    click.echo(f"\n  {go}hostler run {like}\n  hostler status")


def _short(names: list[str]) -> str:
    """Names for a line, each folder once."""
    return ", ".join(dict.fromkeys(re.sub("/.*", "/", name) for name in names))


# `hostler init --template trainer`: the trainer as a package of the user's own, and what runs it.


TRAINER_COMMAND = f"python {copied.SCRIPT} config.yaml"
TRAINER_METRIC = "test/last/accuracy"
