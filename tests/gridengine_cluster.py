"""A real Grid Engine in a folder, on loopback, without systemd: one node that is this machine.

Debian's programs under a root of the test's own. The execution daemon lives in a pid namespace of its own, so
that killing it is a crash of the node. Everything ends with the fixture, by pid.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import servers

PROGRAMS = ("sge_qmaster", "sge_execd", "qsub", "qconf")
BIN, SHARE = Path("/usr/lib/gridengine"), Path("/usr/share/gridengine")
CONF = {
    "min_uid": "0",
    "min_gid": "0",
    "mailer": "/bin/true",
    "load_report_time": "00:00:01",
    "max_unheard": "00:00:05",
    "reschedule_unknown": "00:00:03",
    "execd_params": "ENABLE_ADDGRP_KILL=TRUE",
    "shell_start_mode": "unix_behavior",
    "login_shells": "none",  # what a home sets up for people who log in takes its time
}
SCHEDULER = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
HOST = ("load_scaling", "complex_values", "user_lists", "xuser_lists", "projects", "xprojects")
HOST += ("usage_scaling", "report_variables")


@dataclass
class Grid:
    folder: Path
    slots: int = 4
    notify: int = 8  # seconds from SIGUSR2 to SIGKILL
    ports: list[int] = field(default_factory=list)
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """For whoever talks to it."""
        qmaster, execd = (str(port) for port in self.ports)
        made = {"SGE_ROOT": str(self.folder / "root"), "SGE_CELL": "default", "SGE_ARCH": _arch()}
        return made | {"SGE_QMASTER_PORT": qmaster, "SGE_EXECD_PORT": execd}

    def up(self) -> None:
        self.ports = servers.free_ports(2)
        self._write_files()
        self._start("qmaster", [str(BIN / "sge_qmaster")])
        self.until(lambda: self._answer("qconf", "-sh").returncode == 0, 60, "the master does not answer")
        self.run("qconf", "-as", socket.gethostname())
        self._configure("-Msconf", _changed(self.run("qconf", "-ssconf"), SCHEDULER))
        host = f"hostname {socket.gethostname()}\n" + "".join(f"{name} NONE\n" for name in HOST)
        self._configure("-Ae", host)
        queue = {"qname": "main.q", "hostlist": socket.gethostname(), "slots": str(self.slots)}
        queue |= {"rerun": "TRUE", "load_thresholds": "NONE", "notify": f"00:00:{self.notify:02}"}
        self._configure("-Ap", self._environment())
        self._configure("-Aq", _changed(self.run("qconf", "-sq"), queue | {"pe_list": "smp"}))
        self.start_node()

    def down(self) -> None:
        if "qmaster" in self.daemons:
            self._answer("qdel", "-u", "*")
        if "execd" in self.daemons:
            self.kill_node()
        if "qmaster" in self.daemons:
            _end(self.daemons.pop("qmaster"), signal.SIGTERM)

    def start_node(self) -> None:
        node = ["sh", "-c", 'SGE_ND=1 "$0" & wait; exec sleep infinity', str(BIN / "sge_execd")]
        self._start("execd", ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", *node])
        self.until(self._has_node, 60, "the node does not report")

    def kill_node(self) -> None:
        """A crash: the daemon and every process on the node are gone at once."""
        _end(self.daemons.pop("execd"), signal.SIGKILL)

    def run(self, *words: str) -> str:
        done = self._answer(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}{done.stdout}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """Task → letters of its state; all that wait of an array are one."""
        rows = [line.split() for line in self.run("qstat", "-u", "*").splitlines()[2:]]
        return {f"{row[0]}.{row[-1]}": row[4] for row in rows}

    def until(self, true: Callable[[], object], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"{what}; {self.tail()}"
            time.sleep(0.1)

    def tail(self) -> str:
        logs = [*self.folder.glob("*.out"), *self.folder.glob("spool/**/messages")]
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in logs)

    def _has_node(self) -> bool:
        rows = [line.split() for line in self._answer("qhost").stdout.splitlines()[3:]]
        return any(row[3] != "-" for row in rows)

    def _write_files(self) -> None:
        root, spool = self.folder / "root", self.folder / "spool"
        common, master = root / "default" / "common", spool / "qmaster"
        for made in (common, master / "job_scripts", spool / "execd"):
            made.mkdir(parents=True)
        for name in ("bin", "lib", "utilbin"):
            (root / name).mkdir()
            (root / name / _arch()).symlink_to(BIN)
        (root / "util").symlink_to(SHARE / "util")
        where = f"{common};{master}"
        (common / "bootstrap").write_text(
            "admin_user none\ndefault_domain none\nignore_fqdn true\nspooling_method classic\n"
            f"spooling_lib libspoolc\nspooling_params {where}\nbinary_path {BIN}\n"
            f"qmaster_spool_dir {master}\n"
            "security_mode none\nlistener_threads 2\nworker_threads 2\nscheduler_threads 1\n"
        )
        (common / "host_aliases").write_text(f"{socket.gethostname()} localhost\n")
        (common / "act_qmaster").write_text(f"{socket.gethostname()}\n")
        conf = _changed((SHARE / "default-configuration").read_text(), CONF)
        (self.folder / "conf").write_text(_changed(conf, {"execd_spool_dir": str(spool / "execd")}))
        resources = SHARE / "util" / "resources"
        for words in (
            ("spoolinit", "classic", "libspoolc", where, "init"),
            ("spooldefaults.bin", "configuration", str(self.folder / "conf")),
            ("spooldefaults.bin", "complexes", str(resources / "centry")),
            ("spooldefaults.bin", "usersets", str(resources / "usersets")),
            ("spooldefaults.bin", "managers", "root"),
        ):
            self.run(str(BIN / words[0]), *words[1:])

    def _environment(self) -> str:
        return (
            "pe_name smp\nslots 999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\n"
            "stop_proc_args NONE\nallocation_rule $pe_slots\ncontrol_slaves FALSE\njob_is_first_task TRUE\n"
            "urgency_slots min\naccounting_summary FALSE\nqsort_args NONE\n"
        )

    def _configure(self, option: str, text: str) -> None:
        file = self.folder / f"input{option}"
        file.write_text(text)
        self.run("qconf", option, str(file))

    def _start(self, name: str, command: Sequence[str]) -> None:
        with open(self.folder / f"{name}.out", "ab") as output:
            self.daemons[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**self._env(), "SGE_ND": "1"},
                cwd="/",
                start_new_session=True,
            )

    def _answer(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env=self._env(), capture_output=True, text=True, timeout=60, check=False, cwd="/"
        )

    def _env(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SGE_", "HOSTLER_"))}
        return {**clean, **self.variables, "LD_LIBRARY_PATH": str(BIN)}


@contextmanager
def grid(folder: Path, **more: int) -> Iterator[Grid]:
    for program in PROGRAMS:
        if shutil.which(program) is None:
            servers.missing(f"{program} is not installed: it is in Debian's gridengine packages")
    if os.getuid() != 0:
        servers.missing("the node of a test cluster wants to be started by root")
    made = Grid(folder, **more)
    try:
        made.up()
        yield made
    finally:
        made.down()


def _changed(text: str, values: Mapping[str, str]) -> str:
    """A configuration with other values of these keys."""
    for name, value in values.items():
        text = re.sub(rf"^{name}\s+.*$", f"{name} {value}", text, flags=re.MULTILINE)
    return text


def _arch() -> str:
    return subprocess.run(
        [SHARE / "util" / "arch"], capture_output=True, text=True, check=True
    ).stdout.strip()


def _end(daemon: subprocess.Popen[bytes], number: int) -> None:
    daemon.send_signal(number)
    try:
        daemon.wait(10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait(10)
