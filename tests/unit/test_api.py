"""What `import hostler` costs and offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hostler
from hostler.errors import MachineError

SOURCE = str(Path(hostler.__file__).parents[1])


def loaded(program: str, folder: Path) -> set[str]:
    """Modules that a program has loaded at its end."""
    text = f"{program}\nimport sys\nprint('\\n'.join(sys.modules))"
    env = {**os.environ, "PYTHONPATH": SOURCE, "HOSTLER_CACHE": str(folder / "cache")}
    env = {name: value for name, value in env.items() if name not in ("HOSTLER_DIR", "HOSTLER_STORE")}
    done = subprocess.run(
        [sys.executable, "-c", text], env=env, cwd=folder, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_hostler_loads_nothing_else(tmp_path: Path) -> None:
    before = loaded("", tmp_path)
    assert loaded("import hostler", tmp_path) - before <= {"hostler", "__future__"}


def test_a_tracked_run_loads_the_standard_library_alone(tmp_path: Path) -> None:
    program = "import hostler\nwith hostler.start({'lr': 0.1}) as run: run.log(loss=1)"
    found = {name.partition(".")[0] for name in loaded(program, tmp_path) - loaded("", tmp_path)}
    assert found - set(sys.stdlib_module_names) - {"hostler"} == set()
    assert not found & {"torch", "numpy", "pandas", "obstore", "pydantic", "yaml", "click"}


def test_the_names_are_those_that_are_said() -> None:
    assert set(dir(hostler)) == set(hostler.__all__)
    for name in hostler.__all__:
        assert getattr(hostler, name)
    with pytest.raises(AttributeError, match="no attribute 'strat'"):
        _ = hostler.strat


@pytest.mark.parametrize("read", [hostler.frame, hostler.curves])
def test_a_frame_without_its_packages_says_what_brings_them(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MachineError, match=r"need the package numpy .*hostler\[analysis\]"):
        read(tmp_path)
