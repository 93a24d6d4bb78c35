"""A recorder of what happens to a farm: it writes `history.jsonl` while faults fly, and gathers the evidence.

Every line has `what`, and `at` and `since` of the recorder's own clocks (wall, and seconds since it began).
An entry or a checkpoint has `theirs` too: the writer's clock, which may be wrong by hours. The recorder
reads the store's bytes itself (`rawstore.py`); what hostler's readers show, it asks them in processes of
their own. `checker.py` judges the folder afterwards.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import checker
import rawrecords
import rawstore
from rawrecords import COMMIT, ENTRY

READERS = 600.0  # seconds that a reader may take, on a machine that does much else
SHOWN, LOGGED = 2, 20  # runs that are asked for one by one, and whose output is: those with most attempts
LOOK, ASK = 0.5, 5.0  # seconds between looks at the store, and between questions to a reader


class History:
    """Lines of a file, in the order of events; any thread may add one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._lock, self._began = path, threading.Lock(), time.monotonic()

    def add(self, what: str, **facts: Any) -> None:
        since = round(time.monotonic() - self._began, 3)
        line = json.dumps({"what": what, "at": time.time(), "since": since, **facts}, default=str)
        with self._lock, self.path.open("a") as file:
            file.write(line + "\n")


class Recorder:
    """A history of one sweep on one store, and its evidence; as a context it looks on by itself."""

    def __init__(self, url: str, folder: Path, sweep: str, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.history = History(folder / "history.jsonl")
        self._url, self._sweep = url, sweep
        self._environ = {**environ, "HOSTLER_CACHE": str(folder / "reader")}
        self._raw = rawstore.open_raw(url, environ)
        self._known: set[str] = set()
        self._names: dict[str, str] = {}  # of runs, as a person types them: most attempts first
        self._metrics: list[str] = []  # that every run is expected to have
        self._over, self._threads = threading.Event(), list[threading.Thread]()

    def __enter__(self) -> Recorder:
        self._threads = [threading.Thread(target=self._look_on), threading.Thread(target=self._keep_asking)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def add(self, what: str, **facts: Any) -> None:
        self.history.add(what, **facts)

    def expect(self, runs: Mapping[str, Mapping[str, Any]]) -> None:
        """What each run must be in the end; those of a later call replace those of an earlier one."""
        curves = [set(row["curves"]) for row in runs.values() if row["curves"]]
        self._metrics = sorted(set.intersection(*curves)) if curves else []
        self.add("expected", runs=runs)

    def _look_on(self) -> None:
        while not self._over.is_set():
            begun = time.monotonic()
            try:
                self.look()
            except (OSError, ValueError) as error:
                self.add("not-seen", why=repr(error))
            self._over.wait(max(LOOK, 4 * (time.monotonic() - begun)))

    def _keep_asking(self) -> None:
        while not self._over.wait(ASK):
            self.ask_status("meanwhile")

    def look(self) -> None:
        """Note the entries and checkpoints that have come since the last look."""
        for key in [*self._raw.keys(f"sweeps/{self._sweep}/log/"), *self._raw.keys("runs/")]:
            entry, commit = ENTRY.fullmatch(key), COMMIT.fullmatch(key)
            if key in self._known or not (entry or commit):
                continue
            data = self._raw.get(key)
            if data is not None:
                self._known.add(key)
                record = json.loads(data)
                if entry:
                    self._note_entry(entry, record)
                elif commit:
                    theirs, files = record.get("at"), len(record["files"])
                    facts = {"attempt": int(commit[2]), "step": int(commit[3]), "theirs": theirs}
                    self.add("saved", run=commit[1], **facts, files=files)

    def _note_entry(self, match: re.Match[str], record: Mapping[str, Any]) -> None:
        names = ("kind", "token", "session", "host", "attempt", "state", "then", "reason", "why", "by")
        facts = {name: record[name] for name in names if record.get(name) not in (None, "")}
        self.add("entry", run=match[3], k=int(match[4]), theirs=record.get("at"), **facts)

    def hostler(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "hostler", *words, "--store", self._url]
        own = {"env": self._environ, "cwd": cwd, "stdin": subprocess.DEVNULL}
        return subprocess.run(argv, capture_output=True, text=True, timeout=READERS, **own)  # type: ignore[call-overload,no-any-return]

    def person(self, *words: str, cwd: Path | None = None) -> int:
        """A command of a person, noted with its answer; its exit code."""
        done = self.hostler(*words, cwd=cwd)
        self.add("person", words=words, code=done.returncode, said=(done.stdout + done.stderr)[-500:])
        return done.returncode

    def ask_status(self, when: str) -> None:
        done = self.hostler("status", self._sweep, "--json")
        if done.returncode:
            self.add("not-read", reader="status", said=done.stderr[-500:])
            return
        rows = {row["id"]: row for row in json.loads(done.stdout)}
        often = sorted(rows.values(), key=lambda row: -row["attempt"])
        self._names = {row["id"]: row["name"] for row in often}
        names = ("state", "metrics")
        runs = {r: {**{n: row[n] for n in names}, "attempts": row["attempt"]} for r, row in rows.items()}
        for row in runs.values():
            row["metrics"] = {n: v for n, v in row["metrics"].items() if not n.startswith(checker.OWN)}
        self.add("read", reader="hostler status", when=when, runs=runs)

    def ask_table(self) -> None:
        done = self.hostler("df", self._sweep, "--curves")
        runs = {row["run"]: _of_table(row) for row in csv.DictReader(done.stdout.splitlines())}
        self.add("read", reader="hostler df", when="after", runs=runs)

    def ask_files(self, runs: Iterable[str]) -> None:
        target = self.folder / "pulled"
        self.hostler("pull", self._sweep, "--checkpoint", "--all", "--yes", "--to", str(target))
        places = {run: target / run if (target / run).is_dir() else target for run in runs}  # one: none
        rows = {run: {"files": hashes(place / "checkpoint")} for run, place in places.items()}
        self.add("read", reader="hostler pull", when="after", runs=rows)

    def ask_best(self) -> None:
        """The ranking of all runs by a metric that they have."""
        for metric in self._metrics[:1]:
            words = ("--metric", metric, "--goal", "max", "--of", "last", "--top", str(10**6))
            done = self.hostler("best", self._sweep, *words, "--json")
            rows = [] if done.returncode else json.loads(done.stdout)
            runs = {row["run"]: {"state": row["state"], "metrics": {metric: row["value"]}} for row in rows}
            ranked = {"sweep": self._sweep, "metric": metric, "ranked": [row["run"] for row in rows]}
            said = done.stderr[-500:] if done.returncode else ""
            self.add("read", reader="hostler best", when="after", runs=runs, said=said, **ranked)

    def ask_show(self) -> None:
        for run, name in [*self._names.items()][:SHOWN]:
            done = self.hostler("show", name, "--json")
            row = {"state": f"nothing: {done.stderr[-500:]}"}
            if not done.returncode:
                facts = json.loads(done.stdout)
                row = {n: facts[n] for n in ("state", "metrics")}
                row |= {"attempts": facts["attempt"], "tried": [one["number"] for one in facts["attempts"]]}
                row |= {"totals": facts["totals"], "kept": [one["name"] for one in facts["checkpoints"]]}
                for part in ("metrics", "totals"):
                    row[part] = {n: v for n, v in row[part].items() if not n.startswith(checker.OWN)}
            self.add("read", reader="hostler show", when="after", runs={run: row})

    def ask_logs(self) -> None:
        names = dict([*self._names.items()][:LOGGED])
        if not names:
            return
        done = self.hostler("logs", *names.values(), "--json")
        printed: dict[str, dict[int, list[str]]] = {name: {} for name in names.values()}
        for line in done.stdout.splitlines():
            row = json.loads(line)
            printed[row["run"]].setdefault(row["attempt"], []).append(row["line"])
        rows = {run: {"printed": printed[name]} for run, name in names.items()}
        self.add("read", reader="hostler logs", when="after", runs=rows, said=done.stderr[-500:])

    def ask_metrics(self) -> None:
        """Metrics that the stored output gives once more; asked last, as it writes what it finds."""
        names = [*self._names.values()][:LOGGED]
        if not names:
            return
        done = self.hostler("metrics", *names, "--json")
        rows = [] if done.returncode else json.loads(done.stdout)  # of output without metrics it refuses
        runs = {row["run"]: {"again": {n: row[n] for n in ("own", "metrics")}} for row in rows}
        self.add("read", reader="hostler metrics", when="after", runs=runs, said=done.stderr[-500:])

    def close(self, runs: Sequence[str], cache: Path, tmp: Path, machines: Sequence[str] = ()) -> list[str]:
        """Ask every reader, look for what is left, copy the store, and have it judged: the violations.
        `machines`: those that the platform still has, and their groups."""
        self.look()
        self.ask_status("after")
        self.ask_table()
        self.ask_files(runs)
        self.ask_best()
        self.ask_show()
        self.ask_logs()
        self.ask_metrics()
        self.note_left(cache, tmp, machines)
        rawstore.dump(self._raw, self.folder / "store")
        return [str(violation) for violation in checker.check(self.folder)]

    def note_left(self, cache: Path, tmp: Path, machines: Sequence[str] = ()) -> None:
        """What is there still, although every run has ended."""
        left = {"processes": marked(str(cache)), "files": own_files(cache, tmp)}
        self.add("left", **left, mounts=mounts_below(cache.parent), machines=list(machines))


def events_of(evidence: Path) -> list[dict[str, Any]]:
    """What a folder of evidence says has happened, in its order."""
    return [json.loads(line) for line in (evidence / "history.jsonl").read_text().splitlines()]


def own_files(cache: Path, tmp: Path) -> list[str]:
    """Folders of runs, and files of theirs; what a cache keeps for the next run is none of them."""
    places = (*cache.glob("runs/*"), *cache.glob("alone/*"), *tmp.rglob("*"))
    return [str(path) for path in places if not _is_folder(path) and not _is_scripts(path)]


def _is_folder(path: Path) -> bool:
    """Folders below tmp may stay, as a user's own do; a run's folder may not."""
    return path.is_dir() and path.parent.name not in ("runs", "alone")


def _is_scripts(path: Path) -> bool:
    """What the multiprocessing of a killed script, with its loaders, had for itself."""
    return any(part.startswith("pymp-") for part in path.parts)


def _of_table(row: Mapping[str, str]) -> dict[str, Any]:
    """State, attempts and curves of a row that `hostler df --curves` wrote."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for name, text in row.items():
        if name.endswith(".curve") and text:
            metric = name.removesuffix(".curve")
            curves[metric] = list(zip(json.loads(row[f"{metric}.steps"]), json.loads(text), strict=True))
    curves = {metric: curve for metric, curve in curves.items() if curve}  # others of the table have it
    return {"state": row["state"], "attempts": int(row["attempts"]), "curves": curves}


def hashes(folder: Path) -> dict[str, str]:
    """Files below a folder → their hashes."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def marked(cache: str) -> list[str]:
    """Living processes that carry this cache folder in their environment, by the kernel's own table."""
    mark, found = f"HOSTLER_CACHE={cache}".encode(), list[str]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = (folder / "environ").read_bytes().split(b"\0")
            dead = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX"
            if mark in environ and not dead:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{folder.name} {words[:200]}")
        except OSError:  # it has ended meanwhile, or belongs to the kernel
            continue
    return found


def mounts_below(folder: Path) -> list[str]:
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return []
    places = [line.split()[1].replace("\\040", " ") for line in lines]
    return [place for place in places if Path(place).is_relative_to(folder)]


def sweep_as_it_is(
    url: str, sweep: str, environ: Mapping[str, str], *, metrics: Iterable[str], judged: str
) -> list[dict[str, Any]]:
    """What the runs of a sweep that nobody disturbed are, in their order: for another of the same runs."""
    raw, pattern = rawstore.open_raw(url, environ), re.compile(judged)
    objects = {key: data for key in raw.keys("") if (data := raw.get(key)) is not None}
    found = list[dict[str, Any]]()
    for (name, run), own in rawrecords.by_run(objects).items():
        if name == sweep:
            truth = rawrecords.truth_of(own, name, run)
            files = {} if truth.newest is None else truth.commits[truth.newest]["files"]
            weights = {f["name"]: f["sha256"] for f in files if pattern.search(f["name"])}
            curves = {metric: truth.curve(metric) for metric in metrics}
            row = {"state": truth.state.state, "curves": curves, "weights": weights, "judged": judged}
            result = (truth.state.end or {}).get("result")
            found.append({**row, **({} if result is None else {"result": result})})
    return found


def undisturbed(
    script: str, folder: Path, words: Mapping[str, Sequence[str]], environ: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Each run of a script, without hostler and without a fault: its curves and its files."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "script.py"
    program.write_text(script)

    def one(run: str) -> dict[str, Any]:
        own = folder / run
        own.mkdir()
        surroundings = {**os.environ, "HOSTLER_CHECKPOINT_DIR": str(own), "PACE": "0", **(environ or {})}
        argv = [sys.executable, str(program), *words[run]]
        done = subprocess.run(argv, env=surroundings, capture_output=True, text=True, check=True)
        curves: dict[str, list[tuple[int, float]]] = {}
        for line in done.stdout.splitlines():
            row = json.loads(line)
            for name in set(row) - {"step"}:
                curves.setdefault(name, []).append((row["step"], float(row[name])))
        return {"state": "done", "curves": curves, "weights": hashes(own)}

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(words, pool.map(one, words), strict=True))
