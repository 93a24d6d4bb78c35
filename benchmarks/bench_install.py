"""What a newcomer waits for and stores: the wheel in a bare environment, and from there to a finished sweep.

Needs whatever pip needs to bring the dependencies; where that is out of reach, a line says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from row import Row

ROOT = Path(__file__).resolve().parent.parent
BARE, WITH_BUCKETS = 35, 55  # MB beyond Python


def main() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="hostler-install-") as folder:
        try:
            return _rows(Path(folder))
        except subprocess.CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines()
            print(f"install is not measured: {said[-1] if said else error}", file=sys.stderr)
            return []


def _rows(root: Path) -> list[Row]:
    wheel = _wheel(root)
    floor = _environment(root / "floor")
    needs = _pip(floor, [need for need in _needs(wheel, root) if "extra ==" not in need])
    bare = _environment(root / "bare")
    before = _size(bare)
    begun = time.perf_counter()
    _pip(bare, [str(wheel)])
    _sweep(bare, root)
    took = time.perf_counter() - begun
    whole = _size(bare) - before
    _pip(bare, [f"{wheel}[buckets]"])
    return [
        Row("bare install, beyond Python", whole / 1e6, BARE, 1, "MB"),
        Row("the same with buckets", (_size(bare) - before) / 1e6, WITH_BUCKETS, 1, "MB"),
        Row("pip install to the first finished sweep (floor: its dependencies)", took, needs, 2.5, "s"),
    ]


def _wheel(root: Path) -> Path:
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(root),
        str(ROOT),
    ]
    _run(words, root)
    [made] = root.glob("*.whl")
    return made


def _needs(wheel: Path, root: Path) -> list[str]:
    """What the wheel asks for, from its own record."""
    unpacked = root / "unpacked"
    shutil.unpack_archive(str(wheel), unpacked, "zip")
    [found] = distributions(path=[str(unpacked)])
    return list(found.requires or [])


def _environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder


def _pip(environment: Path, what: Sequence[str]) -> float:
    """Seconds to install these."""
    begun = time.perf_counter()
    words = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    _run([*words, "--disable-pip-version-check", *what], environment)
    return time.perf_counter() - begun


def _sweep(environment: Path, root: Path) -> None:
    """The example hello, as its README says."""
    project = root / "hello"
    shutil.copytree(ROOT / "examples" / "hello", project)
    _run([str(environment / "bin" / "hostler"), "sweep", "-y", "--wait", "sweep.yaml"], project)


def _run(words: Sequence[str], folder: Path) -> None:
    hidden = ("HOSTLER_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    variables["PATH"] = os.pathsep.join([os.path.dirname(words[0]), variables["PATH"]])
    variables["HOSTLER_CACHE"] = str(folder / "cache")
    subprocess.run(words, cwd=folder, env=variables, check=True, capture_output=True, text=True)


def _size(environment: Path) -> int:
    return sum(path.stat().st_size for path in environment.rglob("*") if _counts(path))


def _counts(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and "cache" not in path.parts
