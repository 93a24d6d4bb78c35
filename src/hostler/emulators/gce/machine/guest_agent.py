"""The guest agent of an emulated machine: an sshd at its addresses, open to the keys of its metadata.

A program of its own (`python -I -S guest_agent.py FOLDER ADDRESS...`), importing nothing of hostler. As
Google's does, it makes the host keys, tells them by guest attributes, and keeps accounts and keys as
`ssh-keys` of the metadata says, also while the machine runs. An account has its home in the machine's folder
and the rights of the emulator. It is known to this machine alone: what it changes of the system is in a mount
namespace of its own. Needs root on Linux.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

PORT = 22
WAIT = 20  # seconds for which one question for changed metadata stays open
START = 60.0  # seconds until sshd listens
NEW_MOUNTS, BIND, RECURSIVE, PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
RECORDS = ("/run/utmp", "/var/log/wtmp", "/var/log/lastlog")  # of logins, which sshd writes
OF_A_SESSION = ("HOME", "USER", "SHELL", "GCE_GUARDIAN")  # sshd and the shell set these
ACCOUNT = re.compile(r"[a-z_][-a-z0-9_]{0,31}")
CONFIG = """\
{listen}
HostKey {folder}/ssh/host
AuthorizedKeysFile {folder}/home/%u/.ssh/authorized_keys
PidFile none
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100:30:200
Subsystem sftp internal-sftp
SetEnv {variables}
"""


def main() -> int:
    folder, addresses = Path(sys.argv[1]), sys.argv[2:]
    (folder / "ssh").mkdir(mode=0o700, exist_ok=True)
    made = folder / "ssh" / "host"
    if not made.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(made)], check=True)
    cover_system_files(folder)
    attributes, mark = read_attributes("")
    keep_accounts(folder, accounts(attributes))
    (folder / "ssh" / "config").write_text(config(folder, addresses, os.environ))
    sshd = start_sshd(folder)
    if not await_port(sshd, addresses):
        return sshd.wait()
    kind, key = made.with_suffix(".pub").read_text().split()[:2]
    tell_host_key(kind, key)
    while sshd.poll() is None:
        try:
            attributes, mark = read_attributes(mark)
        except OSError as error:
            print(f"guest agent: the metadata server does not answer: {error}", flush=True)
            time.sleep(1.0)
            continue
        keep_accounts(folder, accounts(attributes))
    return sshd.wait()


def accounts(attributes: Mapping[str, str]) -> dict[str, list[str]]:
    """Keys by account, from lines `account:key`; none where OS Login has them instead. Pure."""
    found: dict[str, list[str]] = {}
    if str(attributes.get("enable-oslogin", "")).upper() == "TRUE":
        return found
    for line in str(attributes.get("ssh-keys", "")).splitlines():
        name, _, key = line.strip().partition(":")
        if ACCOUNT.fullmatch(name) and key.strip():
            found.setdefault(name, []).append(key.strip())
    return found


def config(folder: Path, addresses: Sequence[str], variables: Mapping[str, str]) -> str:
    """The configuration of sshd. Sessions have the variables of the machine's other processes. Pure."""
    listen = "\n".join(f"ListenAddress {address}:{PORT}" for address in addresses)
    given = [f"{name}={_quoted(value)}" for name, value in variables.items() if name not in OF_A_SESSION]
    return CONFIG.format(listen=listen, folder=folder, variables=" ".join(given))


def cover_system_files(folder: Path) -> None:
    """From here on, list of accounts and records of logins are this machine's own."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(NEW_MOUNTS))
    _check(libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None))
    own = folder / "ssh" / "passwd"
    shutil.copyfile("/etc/passwd", own)
    (folder / "ssh" / "system-passwd").write_text(own.read_text())
    pairs = [(own, "/etc/passwd")]
    for number, place in enumerate(RECORDS):
        if os.path.exists(place):
            (empty := folder / "ssh" / f"record{number}").touch()
            pairs.append((empty, place))
    for source, place in pairs:
        _check(libc.mount(os.fsencode(source), os.fsencode(place), None, BIND, None))
    Path("/run/sshd").mkdir(exist_ok=True)  # without it sshd does not start


def keep_accounts(folder: Path, wanted: Mapping[str, Sequence[str]]) -> None:
    """Accounts and their keys, as wanted; an account that is not wanted any more keeps its home, and no key.
    Their lines come first: it is their names that belong to the user number which they share with root."""
    lines = [f"{name}:*:0:0::{folder}/home/{name}:/bin/bash\n" for name in wanted]
    text = "".join(lines) + (folder / "ssh" / "system-passwd").read_text()
    with open(folder / "ssh" / "passwd", "r+") as file:  # in place: it is mounted
        file.write(text)
        file.truncate()
    for known in (folder / "home").glob("*/.ssh/authorized_keys"):
        if known.parent.parent.name not in wanted:
            _write(known, "")
    for name, keys in wanted.items():
        place = folder / "home" / name / ".ssh"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(place / "authorized_keys", "".join(f"# Added by the guest agent\n{key}\n" for key in keys))


def start_sshd(folder: Path) -> subprocess.Popen[bytes]:
    program = shutil.which("sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    words = [program or "/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "ssh" / "config")]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, env={"PATH": os.environ.get("PATH", os.defpath)})


def await_port(sshd: subprocess.Popen[bytes], addresses: Sequence[str]) -> bool:
    """Whether it listens; not if it has ended."""
    end = time.monotonic() + START
    while sshd.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex((addresses[0], PORT)) == 0 and sshd.poll() is None:
                return True
        time.sleep(0.05)
    return False


def tell_host_key(kind: str, key: str) -> None:
    """Nobody hears it where guest attributes are not enabled."""
    try:
        _ask(f"guest-attributes/hostkeys/{kind}", key.encode())
    except urllib.error.HTTPError as error:
        print(f"guest agent: the host keys are told to nobody: {error}", flush=True)


def read_attributes(mark: str) -> tuple[dict[str, str], str]:
    """Attributes of the machine and their mark; with a mark, once they have changed or after a while."""
    wait = f"&wait_for_change=true&timeout_sec={WAIT}&last_etag={mark}" if mark else ""
    body, etag = _ask(f"attributes/?recursive=true{wait}")
    return json.loads(body), etag


def _ask(path: str, value: bytes | None = None) -> tuple[bytes, str]:
    url = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/{path}"
    method = "GET" if value is None else "PUT"
    request = urllib.request.Request(url, value, {"Metadata-Flavor": "Google"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=2 * WAIT) as answer:
        return answer.read(), answer.headers.get("ETag") or ""


def _write(path: Path, text: str) -> None:
    new = path.with_name("new")
    new.write_text(text)
    new.chmod(0o600)
    new.replace(path)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _check(answer: int) -> None:
    if answer:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    sys.exit(main())
