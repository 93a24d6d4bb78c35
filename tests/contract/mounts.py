"""Mounts real file systems in a namespace of its own, and prints what hostler says about folders in them.

Started by `test_mounts.py` under `unshare --mount`; the mounts are gone with this process.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

from hostler.store.registry import file_system, is_network

INIT, GETATTR = 26, 3
HEADER = struct.Struct("<IIQQIIIHH")


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def mount_fuse(folder: Path, kind: str) -> None:
    """A FUSE file system of one empty folder, served by a thread of this process."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"served", os.fsencode(folder), kind.encode(), 0, options):
        raise OSError(ctypes.get_errno(), f"mount -t {kind}")
    threading.Thread(target=_serve, args=(device,), daemon=True).start()


def _serve(device: int) -> None:
    while True:
        request = os.read(device, 1 << 20)
        _, operation, number, *_ = HEADER.unpack_from(request)
        if operation == INIT:
            body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 1 << 16, 1, 0, 0, 0)
        elif operation == GETATTR:
            facts = struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
            body = struct.pack("<QII", 0, 0, 0) + facts
        else:
            os.write(device, struct.pack("<IiQ", 16, -errno.ENOENT, number))
            continue
        os.write(device, struct.pack("<IiQ", 16 + len(body), 0, number) + body)


def main(root: Path) -> None:
    mount("--make-rprivate", "/")
    names = [
        "plain",
        "mit Leerzeichen",
        "каталог ö",
        "back\\slash, comma",
        "fuse",
        "fuse im Übrigen",
        "hidden",
    ]
    folders = {name: root / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    for name in names[1:4]:
        mount("-t", "tmpfs", "tmpfs", str(folders[name]))
    mount_fuse(folders["fuse"], "fuse")
    mount_fuse(folders["fuse im Übrigen"], "fuse.sshfs")
    (root / "scratch").symlink_to(folders["fuse im Übrigen"])
    (root / "scratch of scratch").symlink_to("scratch")
    (root / "dangling").symlink_to(folders["fuse"] / "not yet")
    (folders["hidden"] / "below").mkdir()
    mount_fuse(folders["hidden"] / "below", "fuse.sshfs")
    mount("-t", "tmpfs", "tmpfs", str(folders["hidden"]))
    (folders["hidden"] / "below").mkdir()
    (root / "bound").mkdir()
    mount("--bind", str(folders["каталог ö"]), str(root / "bound"))
    base = folders["back\\slash, comma"].parent / "over"
    for part in ("lower", "upper", "work", "merged"):
        (base / part).mkdir(parents=True)
    mount("-t", "tmpfs", "tmpfs", str(base / "upper"))
    (base / "upper" / "a b").mkdir()
    (base / "upper" / "work").mkdir()
    layers = f"lowerdir={base}/lower,upperdir={base}/upper/a b,workdir={base}/upper/work"
    mount("-t", "overlay", "-o", layers, "overlay", str(base / "merged"))
    asked = [*names, "scratch", "scratch of scratch", "dangling", "bound", "hidden/below", "over/merged"]
    asked += ["scratch/of me/store", "mit Leerzeichen/store", "over/merged/store"]
    found = {name: (file_system(root / name), is_network(root / name)) for name in asked}
    print(json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
