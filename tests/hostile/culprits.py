"""Verbs that break one promise each: what the checker has to see."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

HERE = Path()


def behaves() -> int:
    (HERE / "target" / "file").write_text("fine")
    Path(os.environ["HOSTLER_STORE"], "note").write_text("fine")
    print("fine")
    return 0


def says_what_is_wrong() -> int:
    print("hostler: sweeps/x is not a hostler record", file=sys.stderr)
    return 1


def writes_into_home() -> int:
    with Path.home().joinpath(".bashrc").open("a") as file:
        file.write("owned")
    return 0


def changes_a_mode() -> int:
    Path.home().joinpath(".bashrc").chmod(0o4755)
    return 0


def leaves_a_file_above() -> int:
    Path("../../owned").write_text("owned")
    return 0


def leaves_a_file_beside_its_target() -> int:
    (HERE / "owned").write_text("owned")
    return 0


def deletes_outside() -> int:
    Path("../canary/file").unlink()
    return 0


def shows_the_canary() -> int:
    print(Path("../canary/file").read_text())
    return 0


def takes_the_canary() -> int:
    (HERE / "target" / "copy").write_text(Path("../canary/file").read_text())
    return 0


def restores_a_link_out() -> int:
    (HERE / "target" / "link").symlink_to("../../home")
    return 0


def restores_a_setuid_file() -> int:
    path = HERE / "target" / "program"
    path.write_text("x")
    path.chmod(0o4755)
    return 0


def raises() -> int:
    raise RecursionError("too deep")


def raises_in_a_thread() -> int:
    thread = threading.Thread(target=raises)
    thread.start()
    thread.join()
    return 0


def is_killed() -> int:
    os.abort()


def takes_memory() -> int:
    return len(b"x" * (600 << 20)) and 0


def hangs() -> int:
    time.sleep(60)
    return 0
