"""A real Slurm cluster in a folder, on loopback, without systemd: several nodes that are this machine.

Each slurmd lives in a pid namespace of its own, so that killing it is a crash. With `speed` only the
controller's clock runs faster, so that time limits and requeue delays pass in seconds. Everything ends with
the fixture, by pid.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import servers

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged", "munge")
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
USER = "root"


@dataclass
class Cluster:
    folder: Path
    nodes: int
    cpus: int
    speed: int = 1
    lines: Sequence[str] = ()  # more of slurm.conf
    partitions: Sequence[str] = ()
    accounting: bool = False
    within: Sequence[str] = ()  # words by which a command enters the machine that the cluster is on
    ports: list[int] = field(default_factory=list)
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    born: float = 0.0  # when the controller was started

    @property
    def variables(self) -> dict[str, str]:
        """For whoever talks to it."""
        return {"SLURM_CONF": str(self.folder / "etc" / "slurm.conf")}

    def up(self) -> None:
        for name in ("etc", "state", "log", "run", "spool"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.ports = servers.free_ports(3 + self.nodes)
        self._write_files()
        self._start_munge()
        if self.accounting:
            self._start_accounting()
        self._start_controller()
        for number in range(1, self.nodes + 1):
            self.start_node(f"n{number}")
        self.until(lambda: self._idle() == self.nodes, 60, "the nodes are not idle")

    def down(self) -> None:
        if "slurmctld" in self.daemons:
            cancel = [*self.within, "scancel", "--quiet", "--user", USER]
            subprocess.run(cancel, env=self._env(), timeout=20, check=False)
        for name in [n for n in self.daemons if n.startswith("n")]:
            self.kill_node(name)
        for name in ("slurmctld", "slurmdbd", "mariadb", "munged"):
            if name in self.daemons:
                _end(self.daemons.pop(name), signal.SIGTERM)

    def start_node(self, name: str) -> None:
        node = ["sh", "-c", 'slurmd -D -N "$0" & wait; exec sleep infinity', name]
        self._start(name, ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", *node])

    def kill_node(self, name: str) -> None:
        """A crash: slurmd and every process on the node are gone at once."""
        _end(self.daemons.pop(name), signal.SIGKILL)

    def kill_slurmd(self, name: str) -> None:
        """Only the daemon dies; what runs on the node lives on."""
        [shell] = _children(self.daemons[name].pid)
        [slurmd] = [pid for pid in _children(shell) if Path(f"/proc/{pid}/comm").read_text() == "slurmd\n"]
        os.kill(slurmd, signal.SIGKILL)

    def run(self, *words: str) -> str:
        words = (*self.within, *words)
        done = subprocess.run(words, env=self._env(), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """id → state of what is in the queue."""
        rows = self.run("squeue", "--noheader", "--array", "--format", "%i %T").splitlines()
        return dict(row.split() for row in rows)

    def started_at(self, task: str) -> float:
        """When the controller last started a task, by its log; its clock is set when it starts itself."""
        begun = re.compile(rf"\[(\S+)\] .*(?:Allocate|Started) JobId={re.escape(task)}[( ]")
        log = (self.folder / "log" / "slurmctld.log").read_text(errors="replace")
        told = datetime.fromisoformat(begun.findall(log)[-1]).timestamp()
        return self.born + (told - self.born) / self.speed

    def until(self, true: Callable[[], object], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"{what}; {self.tail()}"
            time.sleep(0.1)

    def tail(self) -> str:
        logs = sorted((self.folder / "log").glob("slurmctld.*"))
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in logs)

    def _idle(self) -> int:
        done = subprocess.run(
            [*self.within, "sinfo", "--noheader", "--states", "idle", "--Node", "--format", "%N %P"],
            env=self._env(), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return len({line.split()[0] for line in done.stdout.splitlines()})

    def _start_munge(self) -> None:
        run = self.folder / "run"
        command = ["munged", "--foreground", f"--socket={run}/munge.socket", "--num-threads=4"]
        command += [f"--key-file={self.folder}/etc/munge.key", f"--pid-file={run}/munged.inner"]
        command += [f"--log-file={self.folder}/log/munged.log", f"--seed-file={run}/munged.seed", "--force"]
        self._start("munged", command)
        ask = ["munge", "-S", f"{run}/munge.socket", "-n"]
        self.until(lambda: _succeeds(ask), 60, "munge does not answer")

    def _start_controller(self) -> None:
        fast = {"LD_PRELOAD": FAKETIME, "FAKETIME": f"+0 x{self.speed}", "FAKETIME_DONT_RESET": "1"}
        self.born = time.time()
        self._start("slurmctld", ["slurmctld", "-D"], fast if self.speed > 1 else {})
        up = [*self.within, "scontrol", "ping"]
        self.until(lambda: b"is UP" in _answer(up, self._env()), 60, "slurmctld does not answer")

    def _start_accounting(self) -> None:
        database = self.folder / "db"
        install = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={database}",
            "--skip-test-db",
            f"--user={USER}",
        ]
        subprocess.run(
            [*install, "--auth-root-authentication-method=socket"],
            check=True,
            capture_output=True,
            timeout=60,
        )
        sock = f"{self.folder}/run/db.sock"
        command = ["mariadbd", "--no-defaults", f"--datadir={database}", f"--socket={sock}", f"--user={USER}"]
        command += [
            "--bind-address=127.0.0.1",
            f"--port={self.ports[1]}",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        command += ["--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--skip-name-resolve"]
        self._start("mariadb", [*command, f"--pid-file={self.folder}/run/db.inner"])
        client = ["mariadb", "--no-defaults", "-S", sock, "-e"]
        self.until(lambda: _succeeds([*client, "select 1"]), 60, "MariaDB does not answer")
        who = "acct@'127.0.0.1'"
        made = f"create database acct; create user {who} identified by 'pw'; grant all on acct.* to {who}"
        subprocess.run([*client, made], check=True, timeout=120)
        self._start("slurmdbd", ["slurmdbd", "-D"])
        show = ["sacctmgr", "--noheader", "show", "cluster"]
        self.until(lambda: _succeeds(show, self._env()), 60, "slurmdbd does not answer")
        for words in (
            ["cluster", "testc"],
            ["account", "test", "Cluster=testc"],
            ["user", USER, "Account=test"],
        ):
            subprocess.run(
                ["sacctmgr", "-i", "add", *words], env=self._env(), capture_output=True, check=False
            )

    def _write_files(self) -> None:
        etc, run = self.folder / "etc", self.folder / "run"
        key = etc / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        for number in range(1, self.nodes + 1):
            (self.folder / "spool" / f"n{number}").mkdir(exist_ok=True)
        for gpu in (0, 1):
            (run / f"gpu{gpu}").symlink_to("/dev/null")
        (etc / "gres.conf").write_text(f"NodeName=n[1-{self.nodes}] Name=gpu Type=a100 File={run}/gpu[0-1]\n")
        (etc / "slurm.conf").write_text("\n".join(self._conf()) + "\n")
        if self.accounting:
            path = etc / "slurmdbd.conf"
            path.write_text("\n".join(self._dbd_conf()) + "\n")
            path.chmod(0o600)

    def _conf(self) -> Iterator[str]:
        f, slow = self.folder, self.speed > 1
        yield from (
            "ClusterName=testc",
            f"SlurmctldHost={socket.gethostname()}(127.0.0.1)",
            f"SlurmUser={USER}",
            f"SlurmdUser={USER}",
            "AuthType=auth/munge",
            f"AuthInfo=socket={f}/run/munge.socket",
            f"SlurmctldPort={self.ports[0]}",
            f"StateSaveLocation={f}/state",
            f"SlurmdSpoolDir={f}/spool/%n",
            f"SlurmctldPidFile={f}/run/slurmctld.inner",
            f"SlurmdPidFile={f}/run/slurmd.%n.inner",
            f"SlurmctldLogFile={f}/log/slurmctld.log",
            f"SlurmdLogFile={f}/log/slurmd.%n.log",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "SlurmdParameters=config_overrides",
            "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1",
            "ReturnToService=2",
            "MpiDefault=none",
            "MailProg=/bin/true",
            "JobAcctGatherType=jobacct_gather/linux",
            f"MinJobAge={300 * self.speed}",  # it is the controller's own clock that runs
            f"MessageTimeout={100 if slow else 10}",
            f"SlurmdTimeout={120 if slow else 10}",
            "KillWait=5",
            "DefMemPerCPU=100",
            "GresTypes=gpu",
        )
        if self.accounting:
            yield "AccountingStorageType=accounting_storage/slurmdbd"
            yield "AccountingStorageHost=127.0.0.1"
            yield f"AccountingStoragePort={self.ports[2]}"
            yield f"AccountingStoragePass=socket={f}/run/munge.socket"
        yield from self.lines
        for number, port in enumerate(self.ports[3:], 1):
            yield (
                f"NodeName=n{number} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} "
                f"CPUs={self.cpus} RealMemory=4000 Gres=gpu:a100:2 State=UNKNOWN"
            )
        yield "PartitionName=main Nodes=ALL Default=YES DefaultTime=10 MaxTime=INFINITE State=UP"
        yield from self.partitions

    def _dbd_conf(self) -> Iterator[str]:
        yield from (
            "AuthType=auth/munge",
            f"AuthInfo=socket={self.folder}/run/munge.socket",
            f"DbdHost={socket.gethostname()}",
            "DbdAddr=127.0.0.1",
            f"DbdPort={self.ports[2]}",
            f"SlurmUser={USER}",
            f"LogFile={self.folder}/log/slurmdbd.log",
            f"PidFile={self.folder}/run/slurmdbd.inner",
            "StorageType=accounting_storage/mysql",
            "StorageHost=127.0.0.1",
            f"StoragePort={self.ports[1]}",
            "StorageUser=acct",
            "StoragePass=pw",
            "StorageLoc=acct",
        )

    def _start(self, name: str, command: Sequence[str], variables: Mapping[str, str] = {}) -> None:
        with open(self.folder / "log" / f"{name}.out", "ab") as output:
            self.daemons[name] = subprocess.Popen(
                [*self.within, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**self._env(), **variables},
                cwd="/",
                start_new_session=True,
            )

    def _env(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "SQUEUE_"))}
        return {**clean, **self.variables}


@contextmanager
def cluster(folder: Path, nodes: int = 2, cpus: int = 4, **more: object) -> Iterator[Cluster]:
    for program in PROGRAMS:
        if shutil.which(program) is None:
            servers.missing(
                f"{program} is not installed: it is in Debian's slurmctld, slurmd, slurm-client, munge"
            )
    if os.getuid() != 0:
        servers.missing("the nodes of a test cluster want to be started by root")
    made = Cluster(folder, nodes, cpus, **more)  # type: ignore[arg-type]
    try:
        made.up()
        yield made
    finally:
        made.down()


def _end(daemon: subprocess.Popen[bytes], number: int) -> None:
    daemon.send_signal(number)
    try:
        daemon.wait(10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait(10)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _succeeds(command: Sequence[str], variables: Mapping[str, str] | None = None) -> bool:
    done = subprocess.run(command, env=variables, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def _answer(command: Sequence[str], variables: Mapping[str, str]) -> bytes:
    return subprocess.run(command, env=variables, capture_output=True, timeout=60, check=False).stdout
