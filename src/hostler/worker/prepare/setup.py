"""The `setup:` command, run once per machine, code, command and Python.

It runs in a copy of the code that stays where it is (builds and editable installs hold that path);
runs copy their working folder from it, and so get what it built. Of a setup that fails nothing is kept
but its log.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hostler.worker.prepare import command as commands
from hostler.worker.prepare.code import identity, working_copy
from hostler.worker.prepare.once import Note, once_in_place


def setup_dir(
    command: Sequence[str],
    code: Path,
    cache: Path,
    note: Note,
    *,
    environ: Mapping[str, str],
    varies: Sequence[str] = (),
    cwd: str = "",
    hide: Callable[[str], str] = str,
) -> Path:
    """The code after its setup; `varies` is what else makes it another setup (Python, variables), `hide`
    covers in its log what nobody may read."""
    if not command:
        return code
    key = hashlib.sha256(json.dumps([list(command), identity(code), list(varies), cwd]).encode()).hexdigest()[
        :40
    ]
    folder = cache / "prepared" / key

    def make(place: Path) -> None:
        note("running setup")
        working_copy(code, place)
        log = folder.with_name(f"{key}.log")
        try:
            commands.run(command, what="setup", cwd=place / cwd, environ=environ, log=log)
        finally:
            said = log.read_bytes().decode("utf-8", "surrogateescape")
            log.write_bytes(hide(said).encode("utf-8", "surrogateescape"))

    return once_in_place(folder, make, what="setup", note=note)
