"""Machines with a real sshd: each has its own address, host name, home, /tmp and processes, and no way out.

They lie in network namespaces on a bridge of their own and cannot see the files of this test or of hostler.
The `laptop` is one more such namespace, from which a test's commands are typed: with its own home, and so
its own ~/.ssh. Needs root on Linux.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import servers

REPOSITORY = Path(__file__).parent.parent
NET = "10.77.0"
HEAD = f"{NET}.1"
SSHD = """\
ListenAddress {address}:22
HostKey /root/.sshd/key
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
KexAlgorithms curve25519-sha256
MaxStartups 100:30:200
MaxSessions 100
"""
# As the processes of the machine see it: its own home and /tmp, nothing of the test or of hostler. The
# packages of the tests lie where nobody looks for them, until a test says so; they are brought first, as they
# may be in the home that is covered then.
LENT = "/root/.lent"
BEGIN = """\
set -e
hostname "$1"
mkdir -p "$2/{lent}" && mount --bind "$3" "$2/{lent}"
mount --rbind "$2" /root
for hidden in /tmp {hidden}; do mount -t tmpfs -o mode=1777 tmpfs "$hidden"; done
cd /root
exec /usr/sbin/sshd -D -e -f /root/.sshd/config
"""


class Host:
    def __init__(self, hosts: Hosts, number: int) -> None:
        self.name, self.address = f"n{number}", f"{NET}.{10 + number}"
        self.home = hosts.folder / self.name / "root"
        self._hosts, self._space, self._link = hosts, f"{hosts.prefix}-n{number}", f"v{number}"
        self._sshd: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        ip("netns", "add", self._space)
        ip(
            "-n",
            self._hosts.head,
            "link",
            "add",
            self._link,
            "type",
            "veth",
            "peer",
            "eth0",
            "netns",
            self._space,
        )
        ip("-n", self._hosts.head, "link", "set", self._link, "master", "br0", "up")
        ip("-n", self._space, "link", "set", "lo", "up")
        ip("-n", self._space, "addr", "add", f"{self.address}/24", "dev", "eth0")
        ip("-n", self._space, "link", "set", "eth0", "up")
        keys = self.home / ".sshd"
        keys.mkdir(parents=True)
        keygen(keys / "key")
        (keys / "config").write_text(SSHD.format(address=self.address))
        self.start()

    def start(self) -> None:
        """The machine, or its sshd again after `crash`."""
        hidden = " ".join(f"'{path}'" for path in self._hosts.hidden)
        words = [
            *("setpriv", "--pdeathsig", "KILL"),  # a test that is killed leaves no machine
            *("nsenter", f"--net=/run/netns/{self._space}"),
            *("unshare", "--uts", "--mount", "--pid", "--fork"),
        ]
        words += [
            "--kill-child=KILL",
            "--mount-proc",
            "sh",
            "-c",
            BEGIN.format(hidden=hidden, lent=Path(LENT).name),
        ]
        with open(self.home.parent / "log", "ab") as log:
            self._sshd = subprocess.Popen(
                [*words, "host", self.name, str(self.home), sysconfig.get_path("purelib")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={"PATH": os.defpath + ":/usr/sbin:/sbin"},
            )

    def crash(self) -> None:
        """Every process of the machine is gone at once; its home stays."""
        assert self._sshd is not None
        os.killpg(self._sshd.pid, signal.SIGKILL)
        self._sshd.wait()
        wait_until(lambda: not self.pids())

    def down(self) -> None:
        if self._sshd is not None:
            self.crash()
        subprocess.run(["ip", "netns", "del", self._space], capture_output=True)

    def cut(self) -> None:
        ip("-n", self._hosts.head, "link", "set", self._link, "down")

    def join(self) -> None:
        ip("-n", self._hosts.head, "link", "set", self._link, "up")

    @property
    def root(self) -> Path:
        """Its file system, as seen from here."""
        return Path(f"/proc/{self._first()}/root")

    def pids(self, holding: str = "") -> dict[int, str]:
        """Processes of the machine but for its sshd and their words; zombies are gone."""
        found, net = {}, self._net()
        for row in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(row / "ns/net") != net:
                    continue
                state = (row / "stat").read_text().rpartition(")")[2].split()[0]
                words = (row / "cmdline").read_text().replace("\0", " ").strip()
            except OSError:
                continue
            if (
                state not in "ZX"
                and holding in words
                and "sshd" not in words
                and " unshare " not in f" {words}"
            ):
                found[int(row.name)] = words
        return found

    def kill(self, holding: str) -> None:
        for pid in self.pids(holding):
            os.kill(pid, signal.SIGKILL)

    def _net(self) -> str:
        return f"net:[{os.stat(f'/run/netns/{self._space}').st_ino}]"

    def _first(self) -> int:
        """The process that is number 1 over there, by its number here."""
        assert self._sshd is not None
        children = Path(f"/proc/{self._sshd.pid}/task/{self._sshd.pid}/children")
        wait_until(lambda: bool(children.read_text().split()))
        return int(children.read_text().split()[0])


class Hosts:
    """`hosts["n1"]` is a machine; `ssh_path` goes first on PATH of whoever types on the laptop."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.prefix = folder, f"hostler-{os.getpid()}"
        self.head = f"{self.prefix}-head"
        self.laptop = folder / "laptop"
        self.hidden = _to_hide()
        self.ssh_path = folder / "bin"
        self.short = Path(tempfile.mkdtemp(prefix="h", dir="/tmp"))  # sockets have short names
        self.every = [Host(self, n) for n in range(1, count + 1)]

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.every if host.name == name)

    def up(self) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        Path("/root/.ssh").mkdir(mode=0o700, exist_ok=True)
        remove_stale()
        ip("netns", "add", self.head)
        ip("-n", self.head, "link", "set", "lo", "up")
        ip("-n", self.head, "link", "add", "br0", "type", "bridge")
        ip("-n", self.head, "addr", "add", f"{HEAD}/24", "dev", "br0")
        ip("-n", self.head, "link", "set", "br0", "up")
        for host in self.every:
            host.up()
        keygen(self.folder / "id")
        for home in (self.laptop, *(host.home for host in self.every)):
            self.settle(home)
        self._wrap("ssh")
        self._wrap("rsync")
        for host in self.every:
            wait_until(lambda host=host: self.ssh(host.name, "true").returncode == 0)

    def down(self) -> None:
        for host in self.every:
            host.down()
        subprocess.run(["ip", "netns", "del", self.head], capture_output=True)
        shutil.rmtree(self.short, ignore_errors=True)

    def settle(self, home: Path) -> None:
        """Give a home its key, and the names and keys of all hosts."""
        folder = home / ".ssh"
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        for name in ("id", "id.pub"):
            shutil.copy(self.folder / name, folder / name)
        shutil.copy(self.folder / "id.pub", folder / "authorized_keys")
        keys = [(h.address, (h.home / ".sshd/key.pub").read_text().split()[:2]) for h in self.every]
        (folder / "known_hosts").write_text("".join(f"{a} {' '.join(key)}\n" for a, key in keys))
        names = [f"Host {h.name}\n  HostName {h.address}\n" for h in self.every]
        (folder / "config").write_text("".join(names) + "Host *\n  IdentityFile ~/.ssh/id\n")

    def on_laptop(self, words: Sequence[str]) -> list[str]:
        """The command that runs these words there. Of its home only ~/.ssh is its own."""
        bind = 'mount --bind "$0" /root/.ssh && exec "$@"'
        enter = ["nsenter", f"--net=/run/netns/{self.head}", "unshare", "--mount"]
        return [*enter, "sh", "-c", bind, str(self.laptop / ".ssh"), *words]

    def ssh(self, name: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=2"]
        return subprocess.run(self.on_laptop(["/usr/bin/ssh", *options, name, *words]), capture_output=True)

    def hang_up(self) -> None:
        """End the connections that the laptop keeps for the next command."""
        for path in self.short.glob("hostler-*/ssh/*"):
            words = ["/usr/bin/ssh", "-o", f"ControlPath={path}", "-O", "exit", "n1"]
            subprocess.run(self.on_laptop(words), capture_output=True)

    def mend(self) -> None:
        """As at first: links up, homes as they were, nothing of hostler running anywhere."""
        for host in self.every:
            host.join()
            for name in (".bashrc", ".profile", "hold"):
                (host.home / name).unlink(missing_ok=True)
            for pid in host.pids():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        for home in (self.laptop, *(host.home for host in self.every)):
            self.settle(home)

    def _wrap(self, name: str) -> None:
        """A program of that name that works as if typed on the laptop."""
        real = shutil.which(name)
        if real is None:
            return
        self.ssh_path.mkdir(exist_ok=True)
        path = self.ssh_path / name
        path.write_text("#!/bin/bash\nexec " + " ".join(map(_quoted, self.on_laptop([real]))) + ' "$@"\n')
        path.chmod(0o755)


@contextmanager
def running(folder: Path, count: int) -> Iterator[Hosts]:
    if sys.platform != "linux" or os.geteuid() != 0:
        servers.missing("machines with a network of their own need root on Linux")
    if shutil.which("sshd") is None and not Path("/usr/sbin/sshd").exists():
        servers.missing("sshd (package openssh-server) is not installed")
    hosts = Hosts(folder, count)
    try:
        hosts.up()
        yield hosts
    finally:
        hosts.down()


def _to_hide() -> list[Path]:
    """Folders of this test that are neither under /tmp nor in the home, which are hidden anyway."""
    covered = ("/tmp", "/root")
    return [path for path in (REPOSITORY,) if not any(path.is_relative_to(place) for place in covered)]


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        servers.missing(f"ip {' '.join(words)}: {done.stderr.strip()}")


def remove_stale() -> None:
    """Networks of tests that were killed."""
    for path in Path("/run/netns").glob("hostler-*-*"):
        if not Path("/proc", path.name.split("-")[1]).exists():
            subprocess.run(["ip", "netns", "del", path.name], capture_output=True)


def keygen(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def wait_until(true: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)
