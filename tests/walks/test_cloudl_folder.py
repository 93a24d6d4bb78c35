"""A folder that clouDL made, imported and searched on an emulated Google, to its report and archive."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cli_world import World
from cloudl_world import KINDS, QUICK, SCRIPT, folder
from gce_world import CloudWorld, cloud
from private_repository import private, repository

WITH_DATA = QUICK.replace("--mkbucket", "--mkbucket --datapth $BASE/faces")
READS_DATA = "from pathlib import Path\n" + SCRIPT.replace(
    "1 / (epoch + 1)", 'int(Path("../data/scale.txt").read_text())'
)
PATIENT = {"HOSTLER_REPORT": "300", "HOSTLER_MACHINES": "300", "HOSTLER_LEASE": "60"}  # on a busy machine


@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[pytest.mark.soak] * (one != "step")) for one in KINDS]
)
def test_folder_of_each_search_kind_goes_all_the_way(kind: str, tmp_path: Path) -> None:
    with cloud(tmp_path, scale=20) as world:
        (world.folder / "train.py").unlink()
        world.env |= {"GOOGLE_CLOUD_PROJECT": world.gce.project, **PATIENT}
        folder(world.folder, kind, sections=2)
        brought = world.run("import", "user_files", "--store", "gs://runs/old")
        assert brought.code == 0, brought.err
        assert "6 runs there, 6 runs here" in brought.out
        swept(world)
        analysed(world, KINDS[kind][1])


@pytest.mark.soak
def test_edited_search_is_the_next_round_with_code_from_git(tmp_path: Path) -> None:
    with cloud(tmp_path, scale=20) as world:
        (world.folder / "train.py").unlink()
        world.env |= {"GOOGLE_CLOUD_PROJECT": world.gce.project, **PATIENT}
        code = repository(tmp_path / "code", {"search.py": SCRIPT})
        fetched = f"git clone file://{code}\ncd code\npython search.py\n"
        folder(world.folder, "list", user_startup__sh=fetched)
        (world.folder / "search.py").unlink()
        assert world.run("import", "user_files", "--store", "gs://runs/old").code == 0
        first = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=300)
        assert first.code == 0, first.err + world.story()
        search = world.folder / "user_files/hyperparameters.json"
        search.write_text(search.read_text().replace('"iterations": 3', '"iterations": 4'))
        again = world.run("import", "user_files", "--store", "gs://runs/old", "-y")
        assert again.code == 0 and "sweep.yaml" in again.out.splitlines()[0], again.out
        second = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=300)
        assert second.code == 0, second.err + world.story()
        assert world.states(world.folder.name) == {"done": 4}
        world.until_gone()


@pytest.mark.parametrize("below", ["", "code"])
def test_script_reads_its_data_beside_its_folder(below: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    start = f"cd {below}\npython search.py\n" if below else "python search.py\n"
    made = folder(world.folder, "list", user_startup__sh=start, quick_start__sh=WITH_DATA)
    (made / "faces").mkdir()
    (made / "faces" / "scale.txt").write_text("10")
    search = world.folder / below / "search.py"
    search.parent.mkdir(exist_ok=True)
    search.write_text(READS_DATA)
    brought = world.run("import", "user_files")
    assert brought.code == 0 and "data: at ../data of the script's folder" in brought.out, brought.err
    assert walked(world) == [10.1, 10.2, 10.3]


def test_private_repository_is_fetched_with_its_access_token(tmp_path: Path) -> None:
    world, token = World(tmp_path), "ghp_hushhush"
    (tmp_path / "served").mkdir()
    repository(tmp_path / "served" / "code", {"search.py": SCRIPT})
    with private(tmp_path / "served", token) as url:
        clone = url.replace("http://", "http://me:$TOKEN@")
        fetched = f"git clone {clone}/code/.git code\ncd code\npython search.py\n"
        folder(world.folder, "list", user_startup__sh=fetched)
        (world.folder / "search.py").unlink()
        brought = world.run("import", "user_files")
        assert brought.code == 0 and 'export TOKEN="$(cat user_files/access_token)"' in brought.out
        refused = world.run("sweep", "-y", "--on", "local", "--wait", "sweep.yaml")
        assert refused.code != 0 and "TOKEN" in refused.err
        assert len(walked(world, TOKEN=token)) == 3
    kept = [_unpacked(path.read_bytes()) for path in world.store.rglob("*") if path.is_file()]
    assert kept and not any(token.encode() in data for data in kept)


def archived(world: World) -> bool:
    """Code that only machines fetch does not say here what it compares by."""
    return world.run("archive", "--top", "2", "-y", "--metric", "val_loss", "--goal", "min").code == 0


def walked(world: World, **variables: str) -> list[float]:
    """Losses of a sweep on this machine, in order; its report and archive are made, too."""
    done = world.run("sweep", "-y", "--on", "local", "--wait", "sweep.yaml", timeout=200, **variables)
    assert done.code == 0, done.out + done.err + world.run("errors").out
    assert world.in_state("done") == 3
    assert world.run("report").code == 0 and archived(world)
    return sorted(row["metrics"]["val_loss"] for row in world.run("status", "--json").json)


def swept(world: CloudWorld) -> None:
    """Modes manual and new."""
    name = world.folder.name
    manual = world.run("sweep", "--no-start", "-y", "sweep.yaml", timeout=120)
    assert manual.code == 0 and world.gce.machines() == [], manual.err
    assert world.states(name) == {"queued": 6}
    new = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=300)
    assert new.code == 0, new.err + world.story()
    world.until_gone()


def analysed(world: CloudWorld, expected: list[float]) -> None:
    name = world.folder.name
    rows = world.run("status", name, "--json").json
    runs = rows["runs"] if isinstance(rows, dict) else rows
    rates = [run["params"]["LR"] for run in runs]
    if expected:
        assert rates == pytest.approx(expected * 2)
    assert all(0.1 <= rate <= 0.6 for rate in rates) and len(set(rates)) >= 3
    best = world.run("best", name, "--json").json
    assert best
    report = world.run("report", name, timeout=120)
    text = (world.folder / report.out.strip()).read_text()
    assert report.code == 0 and "val_loss" in text, report.err
    assert "ghp_hushhush" not in text
    kept = world.run("archive", "--top", "2", "-y", timeout=120)
    assert kept.code == 0 and len(kept.out.strip().splitlines()) >= 2, kept.out + kept.err
    bucket = world.gce.gcs._storage.bucket("runs")  # type: ignore[union-attr]
    stored = [_unpacked(found.data) for found in bucket._objects.values()]
    assert any(b"set_compare_goal" in data and b"cloudl_setup.sh" in data for data in stored)
    assert not any(b"ghp_hushhush" in data for data in stored)


def _unpacked(data: bytes) -> bytes:
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
