from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import servers
from acting_world import World, world
from hostler.fleet.snapshot import snapshot
from hostler.settings import Sizes

__all__ = ["world"]

SCRIPT = """
import json, os, sys
from pathlib import Path
loss = float(sys.argv[2])
print(json.dumps({"step": 1, "loss": loss + 1}))
print(json.dumps({"step": 2, "loss": loss}))
Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "weights.txt").write_text(f"weights of {loss}")
"""
SWEEP = """
name: {name}
command: python train.py
metric: {{name: loss, goal: min}}
parameters:
  loss: {values}
"""


def swept(world: World, name: str, *values: float) -> None:
    world.write("train.py", SCRIPT)
    world.write(f"{name}.yaml", SWEEP.format(name=name, values=list(values)))
    world.ok("sweep", "-y", f"{name}.yaml")
    world.ok("wait", name)


def archived(world: World, *words: str) -> list[float]:
    return [one["value"] for one in json.loads(world.ok("archive", "--json", *words))]


def test_df_writes_csv_and_parquet_with_conditions(world: World, tmp_path: Path) -> None:
    pyarrow = servers.library("pyarrow.parquet")
    swept(world, "one", 3, 1, 2)
    lines = list(csv.DictReader(io.StringIO(world.ok("df"))))
    assert [float(line["loss.best"]) for line in lines] == [3.0, 1.0, 2.0]
    assert {line["state"] for line in lines} == {"done"} and "loss.curve" not in lines[0]
    lines = list(csv.DictReader(io.StringIO(world.ok("df", "one", "--curves", "--where", "param.loss=1..2"))))
    assert [json.loads(line["loss.curve"]) for line in lines] == [[2.0, 1.0], [3.0, 2.0]]
    world.ok("df", "--parquet", str(tmp_path / "x.parquet"), "--csv", str(tmp_path / "x.csv"))
    table = pyarrow.read_table(tmp_path / "x.parquet")
    assert table.column("loss.curve").to_pylist() == [[4.0, 3.0], [2.0, 1.0], [3.0, 2.0]]
    assert (tmp_path / "x.csv").read_text().count("\n") == 4
    refused = world.cli("df", "--where", "lss=1")
    assert refused.returncode == 2 and "no column named 'lss'" in refused.stderr
    assert world.cli("df", "--where", "what").returncode == 2
    both = world.ok("df", "--where", "param.loss!=1", "--where", "param.loss!=3")
    assert [line["name"] for line in csv.DictReader(io.StringIO(both))] == ["one/2"]
    for option in ("--csv", "--parquet"):
        refused = world.cli("df", option, str(tmp_path))
        assert refused.returncode == 2 and "cannot be written" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_archive_keeps_the_best_and_returns_them(world: World, tmp_path: Path) -> None:
    swept(world, "one", 3, 1)
    assert "the archive does not exist yet" in world.cli("archive").stderr
    world.ok("archive", "--top", "0")
    assert "was ever in the archive" in world.cli("archive", "--trend").stderr
    assert archived(world, "--top", "3") == [1.0, 3.0]
    swept(world, "two", 0.5, 9)  # its worker enters what is good enough
    assert archived(world) == [0.5, 1.0, 3.0]
    asked = world.cli("archive", "--top", "1", say="n\n")
    assert asked.returncode == 1 and "2 models" in asked.stderr and archived(world) == [0.5, 1.0, 3.0]
    assert archived(world, "--top", "1", "-y") == [0.5]
    assert archived(world, "--top", "4") == [0.5, 1.0, 3.0, 9.0]
    best = json.loads(world.ok("archive", "--json"))[0]
    assert best["params"] == {"loss": 0.5} and best["sweep"] == "two" and best["source"]["snapshot"]
    world.ok("archive", "--pull", best["run"], "--to", str(tmp_path / "best"))
    assert (tmp_path / "best" / "checkpoint" / "weights.txt").read_text() == "weights of 0.5"
    assert json.loads((tmp_path / "best" / "run.json").read_text())["value"] == 0.5
    world.ok("archive", "--pull", "one/1", "--to", str(tmp_path / "named"))  # as it is called elsewhere
    assert (tmp_path / "named" / "checkpoint" / "weights.txt").read_text() == "weights of 1.0"
    trend = json.loads(world.ok("archive", "--trend", "--json"))
    assert trend[-1]["best"] == 0.5 and {line["sweep"] for line in trend} == {"one", "two"}


def test_the_archive_refuses_what_would_empty_it_by_mistake(world: World, tmp_path: Path) -> None:
    swept(world, "one", 3, 1)
    world.ok("archive", "--top", "2")
    typo = world.cli("archive", "--metric", "lss", "-y")
    assert typo.returncode == 1 and "no run has ended with 'lss'" in typo.stderr and "loss" in typo.stderr
    assert archived(world) == [1.0, 3.0]
    (tmp_path / "file").write_text("mine")
    for words in (["--budget", "much"], ["--pull", "one", "--to", str(tmp_path / "file")]):
        refused = world.cli("archive", *words)
        assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_gc_shows_sizes_and_removes_after_asking(world: World) -> None:
    swept(world, "one", 3, 1, 2)
    young = world.ok("gc", "-n")
    assert "nothing to remove" in young and "kept: 2 runs (saved a short while ago)" in young
    world.env["HOSTLER_GC_GRACE"] = "0"
    shown = world.ok("gc", "-n")
    assert "checkpoints of 2 runs" in shown and "kept: 1 run (best of its sweep)" in shown
    assert world.cli("gc", say="n\n").returncode == 1
    assert "checkpoints of 2 runs" in world.ok("gc", "-n")
    world.ok("gc", "-y")
    assert "nothing to remove" in world.ok("gc", "-n")
    assert len(json.loads(world.ok("status", "one", "--json"))) == 3


def test_redirected_table_and_report_are_not_code(world: World) -> None:
    swept(world, "one", 3)
    cache = Path(world.env["HOSTLER_CACHE"])
    before = snapshot.take(world.folder, Sizes(), cache=cache).sha
    for name, words in (("runs.csv", ["df"]), ("page.html", ["report", "one"])):
        with open(world.folder / name, "w") as file:
            done = subprocess.run(
                [sys.executable, "-m", "hostler", *words], cwd=world.folder, env=world.env, stdout=file
            )
        assert done.returncode == 0 and (world.folder / name).stat().st_size
    assert snapshot.take(world.folder, Sizes(), cache=cache).sha == before
    with open(world.folder / "runs.csv", "a") as file:
        file.write("a line of a person\n")
    assert snapshot.take(world.folder, Sizes(), cache=cache).sha != before


def test_report_into_a_pipe_ends(world: World) -> None:
    swept(world, "one", 3)
    assert "</html>" in world.ok("report", "one", "-o", "/dev/stdout", limit=60)
