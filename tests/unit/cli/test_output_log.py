"""`output.log`, the one file that holds what a run printed as it was: private, and gone with the attempt."""

from __future__ import annotations

from pathlib import Path

from acting_world import World, world

__all__ = ["world"]

SCRIPT = """
import os
from pathlib import Path
log = Path(os.readlink("/proc/self/fd/1"))
print(log.name, *(oct(path.stat().st_mode & 0o777) for path in (log, log.parent.parent)), flush=True)
print(os.environ["TOKEN"], flush=True)
print("in the file:", os.environ["TOKEN"] in log.read_text())
"""


def test_output_log_is_private_and_only_masked_text_leaves_it(world: World) -> None:
    secret = "5ecre7-5ecre7-5ecre7"
    world.write("train.py", SCRIPT)
    world.write("hostler.yaml", "name: p\nsecrets: [TOKEN]\n")
    world.env["TOKEN"] = secret
    out = world.ok("run", "--name", "a", "train.py")
    assert out.splitlines() == ["output.log 0o600 0o700", "***", "in the file: True"]
    world.ok("down")
    places = [Path(world.env["HOSTLER_CACHE"]), world.folder / ".hostler"]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    assert files and not [path for path in files if secret.encode() in path.read_bytes()]
