"""Verbs that people wait for load few of our modules: `python tests/verb_imports.py [SOURCE [VERB…]]`.

`make lint` runs it. A small script is run in a folder of its own, then that store is asked, and a sweep is
looked at. Over a bound, find out what was added and import it where it is used.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "hostler"
BOUNDS = {
    "run t.py": 81,
    "status": 52,
    "sweep -n s.yaml": 203,
    "best --metric loss --goal min": 77,
    "show t": 75,
    "df": 80,
    "logs t": 55,
}
SCRIPT = """print('{"step": 1, "loss": 0.5}')\n"""
SWEEP = "command: python t.py\nparameters:\n  n: [1, 2]\n"
LOADED = "our modules:"
PROGRAM = f"""
import os, sys
from hostler.cli.entry import main
try:
    main()
except SystemExit as left:
    code = left.code or 0
ours = sorted(name for name in sys.modules if name.partition(".")[0] == "hostler")
print({LOADED!r}, *ours, file=sys.stderr)
sys.stderr.flush()
os._exit(code)
"""


def complaints(source: Path, verbs: Sequence[str] = ()) -> Iterator[str]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # its worker may be leaving still
        (Path(folder) / "t.py").write_text(SCRIPT, encoding="utf-8")
        (Path(folder) / "s.yaml").write_text(SWEEP, encoding="utf-8")
        for words, bound in BOUNDS.items():
            if verbs and words.split()[0] not in verbs:
                continue
            modules = _loaded(source, words.split(), folder)
            if len(modules) > bound:
                yield f"hostler {words} loads {len(modules)} modules, more than {bound}: {' '.join(modules)}"


def _loaded(source: Path, words: list[str], folder: str) -> list[str]:
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HOSTLER_")},
        "PYTHONPATH": str(source.parent),
        "HOSTLER_CACHE": str(Path(folder) / "cache"),
    }
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=folder, env=variables, capture_output=True, text=True
    )
    if told.returncode:
        raise RuntimeError(f"hostler {words} exits with {told.returncode}: {told.stderr}")
    return next(line for line in told.stderr.splitlines() if line.startswith(LOADED)).split()[2:]


if __name__ == "__main__":
    found = list(complaints(Path(sys.argv[1]) if sys.argv[1:] else SOURCE, sys.argv[2:]))
    print("\n".join(found) if found else "Verbs that people wait for load few modules.")
    sys.exit(bool(found))
