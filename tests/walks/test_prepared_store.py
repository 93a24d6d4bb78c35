"""Commands over stores that an enemy prepared: links, pipes, rows that lead out."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli_world import Answer, World
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint import checkpoints
from hostler.store import open_store

PAYLOAD = b"echo pwned\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project with one run that has ended."""
    world = World(tmp_path_factory.mktemp("prepared"))
    done = world.run("run", "--name", "one", "train.py")
    assert done.code == 0, done.err
    return world


class Prepared:
    """A copy of the store, and a home with a file worth overwriting."""

    def __init__(self, made: World, folder: Path) -> None:
        self._made = made
        self.home, self.outside, self.path = folder / "home", folder / "outside", folder / "store"
        shutil.copytree(made.store, self.path, symlinks=True)
        for place in (self.home, self.outside):
            place.mkdir()
        (self.home / ".bashrc").write_text("mine")
        (self.outside / "thesis.tex").write_text("mine")
        self.store = open_store(str(self.path))
        self.run_id = next(iter(self.store.list("runs/", deep=False))).key.split("/")[1]

    def run(self, *words: str) -> Answer:
        """Types a command; one that hangs fails the test."""
        return self._made.run(*words, "--store", str(self.path), timeout=90, HOME=str(self.home))

    def pull(self) -> Answer:
        return self.run("pull", "one", "-y", "--to", str(self.home / "got"))

    def rows(self, *rows: dict[str, Any]) -> None:
        """The newest checkpoint says these files."""
        place = checkpoints.committed(self.store, self.run_id)[0]
        record = checkpoints.read(self.store, self.run_id, place).record
        base = {"size": len(PAYLOAD), "n": 0, "parts": 1, "mode": 0o6755, "mtime": 0, "link": ""}
        sha256 = hashlib.sha256(PAYLOAD).hexdigest()
        for n, data in enumerate([PAYLOAD, b""]):
            self.store.put(layout.checkpoint_file(self.run_id, place.attempt, place.step, n), data)
        files = [{**base, "sha256": sha256, **row} for row in rows]
        self.store.put(
            layout.commit(self.run_id, place.attempt, place.step), encode({**record, "files": files})
        )

    @property
    def untouched(self) -> bool:
        file = self.home / ".bashrc"
        return (
            (file.read_text(), file.stat().st_mode & 0o7000) == ("mine", 0)
            and (self.outside / "thesis.tex").read_text() == "mine"
            and os.listdir(self.outside) == ["thesis.tex"]
        )


@pytest.fixture
def prepared(made: World, tmp_path: Path) -> Prepared:
    return Prepared(made, tmp_path)


UP = {"name": "a/b/up", "link": "../.."}
OUT = {"name": "d/out", "link": "../a/b/up/../../.bashrc"}  # by its text inside, by its end the home's


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([UP, OUT, {"name": "d/out", "parts": 2}], id="written through a link"),
        pytest.param([UP, OUT, {"name": "d/out", "parts": 0}], id="truncated through a link"),
        pytest.param([UP, OUT], id="link out"),
        pytest.param([UP, {"name": "a/b/up/file"}], id="below a link"),
        pytest.param([{"name": "x"}, {"name": "x"}], id="twice"),
        pytest.param([{"name": "x", "parts": 10**12}], id="without end"),
    ],
)
def test_pull_of_a_prepared_store_writes_only_below_its_folder(
    prepared: Prepared, rows: list[dict[str, Any]]
) -> None:
    prepared.rows(*rows)
    answer = prepared.pull()
    assert prepared.untouched, "a file of the home was overwritten"
    assert answer.code == 1 and "Traceback" not in answer.err, answer.err
    assert "no checkpoint of" in answer.err and sorted(os.listdir(prepared.home)) == [".bashrc"]


def test_pulled_file_is_not_setuid(prepared: Prepared) -> None:
    prepared.rows({"name": "tool"})
    answer = prepared.pull()
    assert answer.code == 0, answer.err
    assert (prepared.home / "got" / "checkpoint" / "tool").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("place", ["runs/{run}/outputs", "runs/{run}/evil", "data/evil"])
def test_emptied_trash_and_gc_leave_what_a_link_leads_to(prepared: Prepared, place: str) -> None:
    link = prepared.path / place.format(run=prepared.run_id)
    if link.is_dir():
        shutil.rmtree(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(prepared.outside)
    old = (1, 1)
    os.utime(prepared.outside / "thesis.tex", old)
    for words in (["gc", "-y"], ["rm", "one", "-y"], ["rm", "--empty", "-y"], ["gc", "-y"]):
        answer = prepared.run(*words)
        assert prepared.untouched, f"{words} deleted a file outside the store"
        assert "Traceback" not in answer.err, answer.err


@pytest.mark.parametrize("words", [["status"], ["show", "one"], ["pull", "one", "-y"]])
def test_pipes_as_keys_do_not_hang_a_command(prepared: Prepared, words: list[str], tmp_path: Path) -> None:
    for folder in {path.parent for path in prepared.path.rglob("*") if path.is_file()}:
        head, digits, tail = re.match(r"(.*?)(\d*)(\D*)$", max(os.listdir(folder))).groups()  # type: ignore[union-attr]
        os.mkfifo(folder / f"{head}{int(digits or 0) + 1:0{len(digits)}d}{tail}")  # the next in order
    commit = next(prepared.path.rglob("COMMIT"))
    commit.unlink()
    os.mkfifo(commit)
    to = ["--to", str(tmp_path / "got")] if words[0] == "pull" else []
    answer = prepared.run(*words, *to)
    assert "Traceback" not in answer.err, answer.err
    assert answer.code in (0, 1) and answer.out + answer.err


@pytest.mark.parametrize("first", [0, 1])
def test_links_of_two_pulls_never_lead_out_together(prepared: Prepared, first: int) -> None:
    through = {"name": "q/out", "link": "../a/b/up/../../.bashrc"}
    both = [UP, through]
    prepared.rows(both[first], {"name": "file"})
    assert prepared.pull().code == 0
    prepared.rows(both[1 - first], {"name": "file"})
    answer = prepared.pull()
    assert answer.code == 2 and "would lead out" in answer.err
    link = prepared.home / "got" / "checkpoint" / "q" / "out"
    assert not os.path.realpath(link).endswith("home/.bashrc")
