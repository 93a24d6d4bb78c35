"""The ground on which verbs meet a store that an enemy wrote, and the promises that they keep there.

exception   nothing ends in a traceback: what is wrong is said in a line
outside     nothing is written, changed or deleted but in the store, the verb's target, cache and tmp
secret      nothing is read outside the store: its links are not followed
memory      no process takes more than 500 MB
time        an answer comes within 10 seconds
terminal    what is shown to a person holds no escape sequence
rest        what the enemy did not touch is shown, and done
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from honest_store import DUE, SHOWN

from cli_world import FAST, FOREIGN, SOURCE

SECONDS = 10.0
MEMORY = 500 << 20
SECRET = "the canary's own words"  # in files that only links of the store lead to
SERVER = Path(__file__).parent / "verb_server.py"
FOR_PEOPLE = ("status", "show", "errors", "logs")

READING: tuple[tuple[str, ...], ...] = (
    ("status", "--json", "--trash"),
    ("status",),
    ("status", "--sweeps"),
    ("show", "grid/0"),
    ("show", "again", "--json"),
    ("logs", "grid"),
    ("logs", "kept/0"),
    ("errors", "--all"),
    ("df", "--csv", "target/runs.csv", "--curves"),
    ("best", "grid"),
    ("cost", "--explain"),
    ("metrics", "grid", "--pattern", "loss.: (?P<read>[0-9.]+)"),
    ("diff", "grid/0", "grid/1"),
    ("archive",),
    ("archive", "--trend"),
    ("dashboard:look",),
)
TAKING: tuple[tuple[str, ...], ...] = (
    ("push", "grid/0", "target/pushed", "--outputs", "-y"),
    ("pull", "grid/0", "--to", "target/run", "--all", "-y"),
    ("pull", "grid/1", "--to", "target/bundled", "-y"),
    ("pull", "grid/0", "--to", "target/code", "--code", "--trackers", "-y"),
    ("archive", "--pull", "{grid}", "--to", "target/archived", "-y"),
)
DELETING: tuple[tuple[str, ...], ...] = (
    ("verb_pack:now", "--all"),
    ("rm", "grid/1", "-y"),
    ("rm", "--empty", "-y"),
    ("gc", "--state", "failed", "-y"),
    ("status", "--json"),
)
WORKER = ("worker", "{store}", "--no-parent", "--slots", "2", "--billed")
ALL = (*READING, *TAKING, *DELETING)

Attack = Callable[..., "list[Breach]"]  # the deeds, the verbs, the seconds of each


@dataclass(frozen=True)
class Breach:
    """A promise that a verb did not keep."""

    verb: str
    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.verb}: {self.promise}: {self.what}"


@dataclass(frozen=True)
class Answer:
    code: int
    seconds: float
    peak: int
    late: bool
    out: str
    err: str


class VerbServer:
    """A process that has loaded hostler and runs verbs in forks of itself."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(SOURCE), str(SERVER.parent), str(SERVER.parent.parent)])
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self._line() == "ready\n"

    def ask(self, words: Sequence[str], folder: Path, env: Mapping[str, str], seconds: float) -> Answer:
        out, err = folder / "../said/out", folder / "../said/err"
        for path in (out, err):
            path.unlink(missing_ok=True)
        request = {
            "words": list(words),
            "folder": str(folder),
            "env": dict(env),
            "seconds": seconds,
            "out": str(out),
            "err": str(err),
        }
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._line())
        return Answer(**answer, out=_text(out), err=_text(err))

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


class Ground:
    """One store, and the world around it: a home, a working folder, a canary that links lead to.

    `deep/er` lies between them and the root, so that a few `..` of a name lead to what is watched.
    """

    def __init__(self, root: Path, honest: Path, server: VerbServer) -> None:
        self.root, self._server = root, server
        place = root / "deep" / "er"
        self.store, self.home, self.folder = place / "store", place / "home", place / "work"
        self.canary, self.target = place / "canary", place / "work" / "target"
        self._free = [self.store, self.target, place / "cache", place / "tmp", place / "said", place / "run"]
        for folder in (self.home, self.canary / "inner", self.folder, *self._free[1:]):
            folder.mkdir(parents=True)
        place.joinpath("run").chmod(0o700)
        for path in (self.home / ".bashrc", self.canary / "file", self.canary / "inner" / "000001.json"):
            path.write_text(SECRET)
        shutil.copytree(honest, self.store, symlinks=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self._env = {
            **kept,
            **FAST,
            "HOSTLER_STORE": str(self.store),
            "HOSTLER_CACHE": str(place / "cache"),
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(place / "run"),
            "TMPDIR": str(place / "tmp"),
            "PYTHONPATH": str(SOURCE),
            "COLUMNS": "100",
        }
        self._run = next(path.name for path in (honest / "runs").glob("0000000-grid-*"))

    def breaches(
        self, verbs: Sequence[Sequence[str]], *, rest: bool = False, seconds: float = SECONDS
    ) -> list[Breach]:
        """Run these verbs one after the other; `rest` asks whether the sweep nobody touched is shown."""
        found: list[Breach] = []
        taken: set[tuple[str, str]] = set()
        before = self._world()
        for words in verbs:
            answer = self.run(words, seconds)
            after = self._world()
            verb = " ".join(words)
            found += judged(verb, answer, seconds)
            found += [Breach(verb, "outside", line) for line in _changes(before, after)]
            found += [Breach(verb, *row) for row in self._taken() if row not in taken]
            taken = {(breach.promise, breach.what) for breach in found}
            found += [Breach(verb, "rest", line) for line in self._left_out(words, answer) if rest]
            before = after
        return found

    def run(self, words: Sequence[str], seconds: float = SECONDS) -> Answer:
        filled = [word.format(store=self.store, grid=self._run) for word in words]
        answer = self._server.ask(filled, self.folder, self._env, seconds)
        if answer.late or words[0] == "worker":
            self._end_leftovers()
        return answer

    def remove_good_sweeps(self) -> None:
        """Remove what no enemy touches: for the test of this checker."""
        for name in (SHOWN, DUE):
            shutil.rmtree(self.store / "sweeps" / name)

    def _left_out(self, words: Sequence[str], answer: Answer) -> Iterator[str]:
        """Good sweeps that are not shown, or not done by a worker."""
        if tuple(words[:2]) == ("status", "--json") and f'"{SHOWN}"' not in answer.out:
            yield f"{SHOWN} is not shown: {answer.err[-300:]}"
        if words[0] == "worker" and not any((self.store / "sweeps" / DUE).glob("ends/*.json")):
            yield f"{DUE} is not done: {answer.err[-300:] or answer.out[-300:]}"

    def _world(self) -> dict[str, tuple[object, ...]]:
        """Everything below the root but what a verb may write to."""
        return dict(_facts(self.root, self._free))

    def _taken(self) -> Iterator[tuple[str, str]]:
        """Files of the target that hold what lies outside the store, lead out, or have odd rights."""
        for folder, folders, names in os.walk(self.target):
            for path in (Path(folder, name) for name in (*folders, *names)):
                facts = path.lstat()
                if stat.S_ISLNK(facts.st_mode) and not path.resolve().is_relative_to(self.target):
                    yield "target", f"{path.relative_to(self.target)} leads out of it"
                elif stat.S_ISREG(facts.st_mode) and SECRET.encode() in path.read_bytes():
                    yield "secret", f"{path.relative_to(self.target)} holds what lies outside"
                if not stat.S_ISLNK(facts.st_mode) and facts.st_mode & 0o7000:
                    yield "target", f"{path.relative_to(self.target)} has the mode {facts.st_mode:o}"

    def _end_leftovers(self) -> None:
        """Kill what a verb of this ground left behind."""
        mark = f"HOSTLER_CACHE={self._env['HOSTLER_CACHE']}\0".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (path / "environ").read_bytes():
                    os.kill(int(path.name), signal.SIGKILL)
            except OSError:
                continue


@contextmanager
def ground(root: Path, honest: Path, server: VerbServer) -> Iterator[Ground]:
    """A ground for one example, removed after it."""
    made = Ground(root, honest, server)
    try:
        yield made
    finally:
        shutil.rmtree(root, ignore_errors=True)


def judged(verb: str, answer: Answer, seconds: float) -> Iterator[Breach]:
    if answer.late and not verb.startswith("worker"):  # which may wait for what is never over
        yield Breach(verb, "time", f"no answer within {seconds:.0f} s")
    if answer.code < 0 and not answer.late:
        yield Breach(verb, "exception", f"ended by {signal.Signals(-answer.code).name}")
    if answer.peak > MEMORY:
        yield Breach(verb, "memory", f"{answer.peak >> 20} MB")
    for cause in dict.fromkeys(map(_cause, answer.err.split("Traceback (most recent call last)")[1:])):
        yield Breach(verb, "exception", cause)
    if SECRET in answer.out or SECRET in answer.err:
        yield Breach(verb, "secret", "shows what lies outside the store")
    if verb.split()[0] in FOR_PEOPLE and (
        found := re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", answer.out + answer.err)
    ):
        yield Breach(verb, "terminal", f"shows {found.group()!r}")


def _cause(text: str) -> str:
    """The last line of a traceback, and the deepest place in hostler."""
    places = re.findall(r'File "[^"]*/src/(hostler/[^"]+)", line (\d+), in (\S+)', text)
    errors = re.findall(r"^([\w.]*(?:Error|Exception|Exit|Interrupt|Iteration|error)\b[^\n]*)$", text, re.M)
    deepest = "{}:{} {}".format(*places[-1]) if places else "no place in hostler"
    return f"{errors[0][:200] if errors else text[-200:]} at {deepest}"


def _facts(root: Path, free: Sequence[Path]) -> Iterator[tuple[str, tuple[object, ...]]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if Path(folder, name) not in free]
        for name in (*folders, *names):
            path = Path(folder, name)
            facts = path.lstat()
            data = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(facts.st_mode) else ""
            yield str(path.relative_to(root)), (oct(facts.st_mode), facts.st_mtime_ns, facts.st_nlink, data)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if name not in after:
            yield f"{name} is deleted"
        elif name not in before:
            yield f"{name} is new"
        elif before[name] != after[name]:
            yield f"{name} is changed"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(8 << 20).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return ""


def a_socket(path: Path) -> None:
    """A socket in place of a file; its path may be longer than addresses of sockets are."""
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)
