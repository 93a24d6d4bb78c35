"""Tells whether a folder is on a network file system, where an absent answer may be a minute old."""

from __future__ import annotations

from pathlib import Path

NETWORK = (
    "nfs",
    "nfs4",
    "lustre",
    "gpfs",
    "beegfs",
    "cifs",
    "smb3",
    "afs",
    "ceph",
    "glusterfs",
    "9p",
    "fuse.sshfs",
)


def is_network(folder: Path) -> bool:
    """By the mount table where there is one (Linux); elsewhere a folder counts as local."""
    try:
        table = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return False
    return kind_of(str(folder.absolute()), table) in NETWORK


def kind_of(path: str, mountinfo: str) -> str:
    """File system type of the mount that holds a path. Pure."""
    best, kind = "", ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        point = left.split(" ")[4].encode().decode("unicode_escape") if left.count(" ") >= 4 else ""
        if len(point) >= len(best) and point and (path + "/").startswith(point.rstrip("/") + "/"):
            best, kind = point, right.split(" ")[0]
    return kind
