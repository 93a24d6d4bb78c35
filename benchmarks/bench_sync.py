"""5,000 files to another machine over an open connection: nothing changed, and the first copy.

The other machine is a real sshd in a network namespace of its own (root, openssh-server, rsync, zstd).
Floors: rsync where nothing has changed; tar and zstd through the same connection for the first copy.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from row import Row

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

FILES, FOLDERS, TIMES = 5000, 50, 7


def main() -> list[Row]:
    if os.geteuid() != 0 or not all(map(shutil.which, ("sshd", "ssh", "rsync", "zstd", "tar", "ip"))):
        print("bench_sync: needs root, openssh-server, rsync and zstd; not measured", file=sys.stderr)
        return []
    import sshhosts

    with (
        tempfile.TemporaryDirectory(prefix="hostler-bench-") as name,
        sshhosts.running(Path(name), 1) as hosts,
    ):
        os.environ["PATH"] = f"{hosts.ssh_path}:{os.environ['PATH']}"
        os.environ["TMPDIR"] = str(hosts.short)
        try:
            return _measure(_project(Path(name) / "project"), Path(name))
        finally:
            hosts.hang_up()


def _project(folder: Path) -> Path:
    for n in range(FILES):
        path = folder / f"pkg{n % FOLDERS}" / f"mod{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# module {n}\n" * 60)
    time.sleep(2.5)  # older than what a stamp can tell apart
    return folder


def _measure(project: Path, cache: Path) -> list[Row]:
    from hostler.fleet.snapshot.mirror import Mirror
    from hostler.remote.connection import Connection
    from hostler.remote.target import SshTarget

    connection = Connection(SshTarget("n1"))
    ours, floor = list[float](), list[float]()
    mirror = Mirror(project, SshTarget("n1"), "/tmp/ours0", cache)
    mirror.push()
    for n in range(1, TIMES):
        first = Mirror(project, SshTarget("n1"), f"/tmp/ours{n}", cache / str(n))
        first._far()
        ours.append(_timed(first.push))
        floor.append(_timed(lambda n=n: _tar(connection, project, f"/tmp/floor{n}")))  # type: ignore[misc]
        first.close()
    same, rsync = list[float](), list[float]()
    _rsync(connection, project, "/tmp/floor-rsync")
    for _ in range(TIMES):
        same.append(_timed(mirror.push))
        rsync.append(_timed(lambda: _rsync(connection, project, "/tmp/floor-rsync")))
    mirror.close()
    median = statistics.median
    return [
        Row(
            "sync: 5,000 files, nothing changed, to rsync",
            median(same) * 1e3,
            median(rsync) * 1e3,
            0.32,
            "ms",
        ),
        Row("sync: 5,000 files, first copy, to tar + zstd", median(ours) * 1e3, median(floor) * 1e3, 1, "ms"),
    ]


def _rsync(connection: object, project: Path, to: str) -> None:
    shell = " ".join(["ssh", *connection.options])  # type: ignore[attr-defined]
    subprocess.run(["rsync", "-a", "--delete", "-e", shell, f"{project}/", f"n1:{to}/"], check=True)


def _tar(connection: object, project: Path, to: str) -> None:
    far = connection.command(["sh", "-c", f"mkdir {to} && zstd -dc | tar -xf - -C {to}"])  # type: ignore[attr-defined]
    tar = subprocess.Popen(["tar", "-C", str(project), "-cf", "-", "."], stdout=subprocess.PIPE)
    zstd = subprocess.Popen(["zstd", "-qc"], stdin=tar.stdout, stdout=subprocess.PIPE)
    subprocess.run(far, stdin=zstd.stdout, check=True)
    zstd.wait()
    tar.wait()


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    for row in main():
        print(row.name, f"{row.ours:.1f} {row.floor:.1f} {row.ratio:.2f}x, bound {row.bound}x")
