"""The library where the ground is bad: full and read-only disks, bad objects, other checkpoints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import servers
from script_world import Scripts

TRAIN = """
import os, sys
import hostler

class Big:
    def __init__(self): self.data = [float(n) for n in range(int(os.environ.get("SIZE", "10")))]
    def state_dict(self): return {"data": self.data}
    def load_state_dict(self, state): self.data = state["data"]

with hostler.start({"a": 1}, save_every="1 steps") as run:
    run.track(big=Big())
    for step in run.steps(int(os.environ.get("STEPS", "20"))):
        run.log({f"m{n}": step for n in range(20)})
print("trained to the end")
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    made = Scripts(tmp_path)
    made.write(TRAIN)
    return made


def test_full_disk_under_the_cache_is_reported_and_training_continues(
    scripts: Scripts, small_disk: Path
) -> None:
    scripts.env["HOSTLER_CACHE"] = str(small_disk / "cache")
    done = scripts.run(SIZE="100000", STEPS="4000")
    assert done.code == 0 and "trained to the end" in done.out, done.err
    assert "metrics are dropped" in done.err or "not saved" in done.err
    assert done.err.count("metrics are dropped") <= 1


def test_a_full_store_is_said_and_the_training_goes_on(scripts: Scripts, small_disk: Path) -> None:
    scripts.write("import hostler.sdk.alone.home as home\nhome.LAST_TRIES = 0.5\n" + TRAIN)
    scripts.store = str(small_disk / "store")
    done = scripts.run(SIZE="600000", STEPS="5")  # one checkpoint is more than the disk
    assert done.code == 0 and "trained to the end" in done.out, done.err
    assert "the disk is full" in done.err and "the next start of this script on this machine" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder_is_reported_and_the_training_continues(scripts: Scripts) -> None:
    scripts.project.chmod(0o555)
    done = scripts.run()
    scripts.project.chmod(0o755)
    assert done.code == 0 and "the store cannot be used" in done.err


def test_unusable_cache_is_reported_and_the_training_continues(scripts: Scripts) -> None:
    blocked = scripts.root / "file"
    blocked.write_text("")
    done = scripts.run(HOSTLER_CACHE=str(blocked / "cache"))
    assert done.code == 0 and "cannot be used (Not a directory)" in done.err, done.err
    assert scripts.row().state == "done"


def test_library_without_any_place_for_files_prints_one_line(scripts: Scripts) -> None:
    blocked = scripts.root / "file"
    blocked.write_text("")
    done = scripts.run(HOSTLER_CACHE=str(blocked / "a"), XDG_RUNTIME_DIR=str(blocked / "b"))
    assert done.code == 1 and "set HOSTLER_CACHE to a folder with room" in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("run.track(thing=object())", "thing cannot be tracked: object has no state_dict"),
        ("run.track(a=Big()); run.track(a=Big())", "a is tracked already"),
        ("hostler.start()", "is still open in this process"),
        ("run.finish(); run.log(a=1)", "log: 0000000-train"),
        ("run.keep_best('a', 'most')", "neither 'max' nor 'min'"),
        ("run.artifact('nowhere')", "nowhere does not exist"),
        ("run.params.missing", "no parameter named 'missing'"),
    ],
)
def test_what_the_user_gets_wrong_is_a_clear_error(scripts: Scripts, lines: str, said: str) -> None:
    head = TRAIN.split("    run.track(big")[0]
    scripts.write(f"{head}    {lines}\n")
    done = scripts.run()
    assert done.code == 1 and said in done.err.splitlines()[-1], done.err


def test_a_checkpoint_of_another_model_names_the_keys(scripts: Scripts) -> None:
    servers.library("torch")
    script = (
        "import hostler, os, torch\n"
        "with hostler.start({{'a': 1}}, name='same', save_every='1 steps') as run:\n"
        "    run.track(model=torch.nn.Sequential({layers}))\n"
        "    for step in run.steps(5):\n"
        "        if step == 3 and not run.resumed: run.save(wait=True); raise SystemExit(1)\n"
    )
    scripts.write(script.format(layers="torch.nn.Linear(2, 2)"))
    scripts.run()
    scripts.write(script.format(layers="torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)"))
    done = scripts.run()
    assert done.code == 1 and "1.weight" in done.err and "0.weight" in done.err
