"""A platform is its folder and one line of the registry: nothing else names it, nothing else misses it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.platform_names import complaints

import hostler

SOURCE = Path(hostler.__file__).parent
ROOT = Path(__file__).parents[3]
GONE = "kubernetes"
SHORT = ["test_slurm_fates.py", "test_slurm_host.py", "test_over.py"]  # tests of others that take a moment
ALIKE = [f"test_{GONE}_", "test_answer_form", "test_platform_folders"]  # tests of the one that is gone, too
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
IMPORT_ALL = """
import importlib, pkgutil, sys
import hostler
for module in pkgutil.walk_packages(hostler.__path__, "hostler."):
    if module.name.endswith("__main__") or module.name.startswith(("hostler.callbacks.", "hostler.train.")):
        continue  # which load frameworks, and nothing of backends
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert not (error.name or "").startswith("hostler"), (module.name, error)
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """hostler without the folder of one platform and its line in the registry."""
    root = tmp_path_factory.mktemp("without")
    shutil.copytree(SOURCE, root / "hostler")  # bytecode, too: that of a thousand files takes seconds
    shutil.rmtree(root / "hostler" / "backends" / GONE)
    registry = root / "hostler" / "backends" / "registry.py"
    lines = registry.read_text().splitlines(keepends=True)
    kept = [line for line in lines if GONE not in line]
    assert len(kept) == len(lines) - 1
    registry.write_text("".join(kept))
    return root


def run(root: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables = {**known, "PYTHONPATH": str(root), "HOSTLER_CACHE": str(cwd / ".cache")}
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=variables, capture_output=True, text=True, timeout=1200
    )


def test_no_platform_is_named_outside_its_folder() -> None:
    assert list(complaints(SOURCE)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from hostler.backends.gce import names", "import of hostler.backends.gce.names"),
        ("from hostler.backends import slurm", "import of hostler.backends.slurm"),
        ("given.slurm", "the name slurm"),
        ("class GceThing: ...", "the name Gce_Thing"),
        ("kinds = {'kubernetes'}", "the text 'kubernetes'"),
        ("group.add_argument('--gce')", "the text '--gce'"),
        ("fleet.backend == 'ssh'", "the question fleet.backend == 'ssh'"),
        ("Fleet('here', 'local')", "the fleet Fleet('here', 'local')"),
    ],
)
def test_a_name_or_import_outside_is_found(tmp_path: Path, text: str, said: str) -> None:
    for name in ("local", "ssh", "slurm", "gce", "kubernetes"):
        folder = tmp_path / "backends" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"{text}\n")
    assert not list(complaints(tmp_path))
    (tmp_path / "worker.py").write_text(f"'''On gce and ssh.'''\n{text}\n")
    assert f"worker.py:2 {said}" in list(complaints(tmp_path))


def test_without_one_platform_every_module_is_imported(without: Path, tmp_path: Path) -> None:
    done = run(without, "-c", IMPORT_ALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(complaints(without / "hostler"))


def test_without_one_platform_runs_are_planned_and_carried_out(without: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys; print('trained', sys.argv[1:])\n")
    (tmp_path / "grid.yaml").write_text("command: python train.py\nparameters: {lr: [1, 2]}\n")
    (tmp_path / "hostler.yaml").write_text("fleets: {tau: {backend: slurm}}\n")
    plan = run(without, "-m", "hostler", "plan", "grid.yaml", cwd=tmp_path)
    assert plan.returncode == 0 and "2" in plan.stdout + plan.stderr, plan.stderr
    done = run(without, "-m", "hostler", "run", "train.py", "--lr", "0.1", cwd=tmp_path)
    assert done.returncode == 0 and "trained ['--lr', '0.1']" in done.stdout, done.stderr
    (tmp_path / "hostler.yaml").write_text(f"fleets: {{pods: {{backend: {GONE}}}}}\n")
    refused = run(without, "-m", "hostler", "plan", "grid.yaml", cwd=tmp_path)
    assert refused.returncode == 2 and f"'{GONE}' is not a backend" in refused.stderr


def test_without_one_platform_imports_are_as_lint_wants_them(without: Path, tmp_path: Path) -> None:
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    linted = run(without, "-c", LINT, *settings, cwd=tmp_path)
    assert linted.returncode == 0 and " 0 broken" in linted.stdout, linted.stdout + linted.stderr
    helped = run(without, str(ROOT / "tests" / "help_imports.py"), str(without / "hostler"), cwd=tmp_path)
    assert helped.returncode == 0, helped.stdout + helped.stderr


def test_without_one_platform_tests_of_others_pass(without: Path, tmp_path: Path) -> None:
    pass_without(without, SHORT, tmp_path)


@pytest.mark.soak
def test_without_one_platform_tests_of_every_other_pass(without: Path, tmp_path: Path) -> None:
    files = [path.name for path in Path(__file__).parent.glob("test_*.py")]
    pass_without(without, [name for name in files if not name.startswith(tuple(ALIKE))], tmp_path)


def pass_without(without: Path, files: list[str], cwd: Path) -> None:
    """Its own test beside them is the proof that hostler without it is tested: that cannot be imported."""
    own = f"test_{GONE}_host.py"
    paths = [str(Path(__file__).parent / name) for name in [*files, own]]
    done = run(without, "-m", "pytest", "--continue-on-collection-errors", *paths, cwd=cwd)
    assert f"No module named 'hostler.backends.{GONE}'" in done.stdout, done.stdout + done.stderr
    [counts] = re.findall(r"^(?:\d+ \w+, )*(\d+ passed.*?) in ", done.stdout, re.MULTILINE)
    assert re.fullmatch(r"\d+ passed(, \d+ (skipped|deselected|warnings?))*, 1 error", counts), done.stdout
