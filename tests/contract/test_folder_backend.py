"""The example of docs/adding-a-backend.md: the contract, and a run carried out by a folder of jobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_world import World
from hostler.backends import project_file, registry
from hostler.backends.base import Backend, Launch
from hostler.errors import MachineError
from hostler.spec.project import Fleet
from hostler.testing.backend_contract import BackendContract

EXAMPLES = Path(__file__).parents[1] / "examples"
SOURCE = Path(__file__).parents[2] / "src"
SAVES = """
import os, signal, sys, time
from pathlib import Path
saved = Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "count.txt")
if saved.exists():
    print("goes on at", saved.read_text())
    sys.exit()
def save(*_):
    saved.write_text("7")
    sys.exit()
signal.signal(signal.SIGTERM, save)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def line_of_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example known to hostler while a test runs; its workers learn of it from `site` below."""
    monkeypatch.setitem(registry.BACKENDS, "folder", "folder_queue")
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.fixture
def site(tmp_path: Path) -> str:
    """A PYTHONPATH on which every Python imports the example when it starts."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import folder_queue\n")
    return f"{folder}:{EXAMPLES}:{SOURCE}"


@pytest.fixture
def jobs(tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a scheduler that runs."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", site)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    scheduler = subprocess.Popen([sys.executable, str(EXAMPLES / "folder_scheduler.py"), str(folder)])
    yield folder
    scheduler.terminate()
    scheduler.wait()


class TestFolder(BackendContract):
    chooses = True

    @pytest.fixture
    def backend(self) -> Backend:
        return registry.backend("folder")

    @pytest.fixture
    def fleet(self, backend: Backend, jobs: Path) -> Fleet:
        return Fleet(
            name="de'sk; echo x", backend="folder", workers=2, slots=1, options={"folder": str(jobs)}
        )

    @pytest.fixture
    def launch(self, tmp_path: Path) -> Launch:
        store = tmp_path / "a store with 'quotes'"
        store.mkdir()
        return Launch(store=str(store), python=sys.executable)


def test_run_over_the_time_limit_ends_in_the_next_job(tmp_path: Path, site: str, jobs: Path) -> None:
    world = World(tmp_path)
    world.env["PYTHONPATH"] = site
    world.write("train.py", SAVES)
    world.write("hostler.yaml", f"fleets:\n  queue: {{backend: folder, folder: '{jobs}', time: 8s}}\n")
    done = world.run("run", "--on", "queue", "train.py")
    assert done.code == 0, done.err
    assert "goes on at 7" in done.out
    [log] = jobs.glob("*.log")
    assert "it is queued again" in log.read_text()
    assert log.read_text().count("no run is left") == 1


def test_waiting_job_is_cancelled_before_it_starts(tmp_path: Path) -> None:
    fleet = Fleet(name="later", backend="folder", options={"folder": str(tmp_path)})
    backend = registry.backend("folder")
    [worker] = backend.start(backend.plan(fleet, Launch(store="/store")))
    assert (worker.detail, worker.count) == ("waits", 1)
    [stopped] = backend.stop(fleet)
    assert stopped.id == worker.id and (tmp_path / f"{worker.id}.cancel").exists()


def test_folder_without_a_scheduler_is_refused(tmp_path: Path) -> None:
    fleet = Fleet(name="later", backend="folder", options={"folder": str(tmp_path / "jobs")})
    backend = registry.backend("folder")
    with pytest.raises(MachineError, match="no such folder"):
        backend.start(backend.plan(fleet, Launch(store="/store")))


def test_unknown_key_of_the_fleet_is_refused_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "hostler.yaml"
    file.write_text("fleets:\n  queue: {backend: folder, foldr: /jobs}\n")
    with pytest.raises(Exception, match="foldr"):
        project_file.load_project(file)


def test_example_has_at_most_150_lines() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in (EXAMPLES / "folder_queue").glob("*.py"))
    assert lines <= 150
