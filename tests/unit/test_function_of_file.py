"""Which functions workers import from a file, and which are sent packed; seen from a script's own process."""

from __future__ import annotations

import statistics
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hostler.sdk import call
from hostler.spec.project import Project
from hostler.sweeping import place_of

SCRIPT = """
import functools
from pathlib import Path
from hostler.spec.project import Project
from hostler.sweeping import packed

def doubled(function):
    @functools.wraps(function)
    def both(**given):
        return 2 * function(**given)
    return both

def train(lr=1):
    return lr

@doubled
def decorated(lr=1):
    return lr

def again():
    return "old"
first = again
def again():
    return "new"

class Task:
    @staticmethod
    def static():
        return 1
    @classmethod
    def own(cls):
        return 1

if __name__ == "__main__":
    def local():
        return 1
    project = Project(name="p", root=Path("."), store=".hostler")
    for work in (train, decorated, again, Task.static, Task.own, doubled(train), first, local):
        print("file" if packed(work, project) is None else "packed")
"""


def test_function_is_imported_only_where_its_name_means_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["file"] * 5 + ["packed"] * 3, done.stderr


def test_function_that_is_installed_is_named_by_its_module(tmp_path: Path) -> None:
    """Also where the packages lie in the project's own folder."""
    for root in (tmp_path, Path(sysconfig.get_path("stdlib")), Path(pytest.__file__).parents[1]):
        project = Project(name="p", root=root, store=".hostler")
        assert place_of(statistics.mean, project) == "statistics:mean"
        assert place_of(pytest.approx, project).startswith("_pytest.")


@pytest.mark.parametrize("package", ["pkgone", "pkgtwo/inner"])
def test_function_of_a_package_has_its_relative_imports(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = tmp_path / package
    folder.mkdir(parents=True)
    for part in [folder, *folder.parents]:
        if part.is_relative_to(tmp_path) and part != tmp_path:
            (part / "__init__.py").touch()
    (folder / "model.py").write_text("K = 3")
    (folder / "train.py").write_text("from .model import K\ndef work(x):\n    return K * x\n")
    assert call._function(f"{folder / 'train.py'}:work")(2) == 6
