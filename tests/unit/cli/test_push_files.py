"""Files that `hostler push` brings out of a checkpoint, whatever the script, or an enemy, has put there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hostler.cli.main import cli
from hostler.errors import HostlerError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from seen_world import Seen

Push = Callable[..., Result]


@pytest.fixture
def push(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Push:
    """Saves a folder as a run's checkpoint, and pushes the run to `there`."""
    seen = Seen(tmp_path / "store")
    job = seen.submit("grid", [{"lr": 0.1}])
    seen.claim(job, 0)
    run = job.run_id(0)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))

    def pushed(made: Path, *options: str) -> Result:
        checkpoints.save(seen.store, run, Place(1, 3), made, lambda: {"position": 3}, lambda: None)
        seen.store.put(layout.output_file(run, 1, 0), b"fine")
        row = {"name": "report.txt", "size": 4, "sha256": hashlib.sha256(b"fine").hexdigest(), "n": 0}
        seen.store.put(layout.output_commit(run, 1), encode({"run": run, "files": [row]}))
        points = [*seen.curve(job, 0, [])]
        seen.end(job, 0, points=points)
        words = ["push", "--store", seen.url, "grid/0", str(tmp_path / "there"), "-y", *options]
        return CliRunner().invoke(cli, words)

    return pushed


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "w").write_bytes(b"weights")
    return folder


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_links_to_files_are_pushed_as_files_and_others_left(push: Push, made: Path, tmp_path: Path) -> None:
    (made / "newest").symlink_to("model/w")
    (made / "last").symlink_to("model")
    (made / "gone").symlink_to("nothing")
    (made / "round").symlink_to("round")
    (made / "README.md").symlink_to("README.md")
    done = push(made)
    assert done.exit_code == 0, (done.output, done.exception)
    assert names(tmp_path / "there") == {"model/w", "newest", "run.json", "curves.csv"}
    assert not (tmp_path / "there" / "newest").is_symlink()
    assert (tmp_path / "there" / "newest").read_bytes() == b"weights"
    assert "left out, links to no file or parts of .git: README.md, gone, last, …" in done.stderr


def test_insides_of_a_repository_are_not_pushed(push: Push, made: Path, tmp_path: Path) -> None:
    for name in (".git/hooks/post-commit", "sub/.GIT/config"):
        (made / name).parent.mkdir(parents=True)
        (made / name).write_text("planted")
    assert push(made).exit_code == 0
    assert names(tmp_path / "there") == {"model/w", "README.md", "run.json", "curves.csv"}


@pytest.mark.parametrize("name", ["run.json", "curves.csv", "outputs"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_name_that_is_taken_is_said_and_nothing_pushed(
    push: Push, made: Path, tmp_path: Path, name: str, kind: str
) -> None:
    if kind == "file":
        (made / name).write_text("mine")
    else:
        os.symlink("model" if kind == "link" else "nothing", made / name)
    done = push(made, "--outputs")
    assert isinstance(done.exception, HostlerError), (done.output, done.exception)
    assert f"the checkpoint has '{name}' of its own" in str(done.exception)
    assert not (tmp_path / "there").exists()


def test_card_of_the_script_stays_with_outputs_beside_it(push: Push, made: Path, tmp_path: Path) -> None:
    (made / "README.md").write_text("my own")
    assert push(made, "--outputs").exit_code == 0
    assert (tmp_path / "there" / "README.md").read_text() == "my own"
    assert (tmp_path / "there" / "outputs" / "report.txt").read_text() == "fine"
