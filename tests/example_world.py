"""A copy of an example, and its README's commands, typed one after the other as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from cli_world import Answer, World, eventually
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import rows
from hostler.store import open_store

EXAMPLES = Path(__file__).parent.parent / "examples"


class Example(World):
    """`type` runs a line of the README; `interrupt` kills one rank of what is being trained."""

    def __init__(self, root: Path, name: str) -> None:
        super().__init__(root, name)
        (self.folder / "train.py").unlink()
        skipped = shutil.ignore_patterns("__pycache__", ".hostler", "data")
        shutil.copytree(EXAMPLES / name, self.folder, dirs_exist_ok=True, ignore=skipped)

    def typed(self, title: str) -> list[str]:
        """The commands of the `sh` blocks under a heading of its README."""
        readme = (self.folder / "README.md").read_text()
        found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)
        assert found, title
        blocks = re.findall(r"^```sh\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)
        return "".join(blocks).splitlines()

    def type(self, line: str, timeout: float = 240) -> Answer:
        program, *words = shlex.split(line)
        if program == "hostler":
            return self.run(*words, timeout=timeout)
        assert program == "python", line
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def interrupt(self, rank: int, script: str) -> None:
        """Kill this rank once a checkpoint of the run is in the store."""
        eventually(self._saved, 240)
        mine = f"\0RANK={rank}\0".encode()
        for pid in self.processes(holding=script):
            if mine in b"\0" + Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGKILL)
                return
        raise AssertionError(f"no process has rank {rank}")

    def attempts(self, sweep: str) -> tuple[str, int | None]:
        [row] = [row for row in rows(open_store(str(self.store))) if row.sweep == sweep]
        return row.state, row.attempt

    def _saved(self) -> bool:
        store = open_store(str(self.store))
        return any(checkpoints.committed(store, row.id) for row in rows(store) if row.state == "running")
