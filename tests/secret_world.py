"""Secrets planted in a fleet, a run that does with them all that it should not, and a search for them.

Every line of every value holds one random token, so that whatever somebody makes of it can be looked for, and
is not taken for what another test has planted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hostler.worker.prepare.secret_encodings import encodings

NAMES = ("PLAIN_KEY", "PEM_KEY", "ODD_KEY", "BIG_KEY")
# Prints them whole, in two writes, line by line, encoded; says which have arrived; waits; fails of them.
TRAIN = """
import base64, hashlib, json, os, sys, time, urllib.parse
values = {name: os.environ[name] for name in ("PLAIN_KEY", "PEM_KEY", "ODD_KEY", "BIG_KEY")}
for name, value in values.items():
    print(value), print(repr(value)), print(json.dumps({"value": value}))
    print(base64.b64encode(value.encode()).decode()), print(base64.b64encode(f"u:{value}".encode()).decode())
    print(base64.encodebytes(value.encode()).decode())
    print(base64.urlsafe_b64encode(value.encode()).decode())
    print(urllib.parse.quote(value)), print(urllib.parse.quote_plus(value))
    for line in value.splitlines():
        print("  |", line)
    sys.stdout.write(value[:9])
    sys.stdout.flush()
    time.sleep(0.3)
    print(value[9:], flush=True)
digests = {name: hashlib.sha256(value.encode()).hexdigest() for name, value in values.items()}
print("arrived", json.dumps(digests), flush=True)
if HOLD:
    open(HOLD + ".waits", "w").close()
while HOLD and os.path.exists(HOLD):
    time.sleep(0.05)
raise ValueError(f"{values['PLAIN_KEY']} and {values!r} were refused")
"""


class Planted:
    def __init__(self) -> None:
        self.token = secrets.token_hex(16)
        token = self.token
        pem = "\n".join(f"MII{token}{n:04d}+/==" for n in range(12))
        self.values = {
            "PLAIN_KEY": f"key-{token}",
            "PEM_KEY": f"-----BEGIN {token}-----\n{pem}\n-----END {token}-----\n",
            "ODD_KEY": f'it\'s "{token}" for $HOME; \\n ünïcødé 🔑\t`id` %s {{x}}\n second line {token} ',
            "BIG_KEY": (secrets.token_hex(40) + token) * 600,
        }
        self.values["BIG_KEY"] = self.values["BIG_KEY"][: 64 * 1024 - 1] + "!"
        whole = {form for value in self.values.values() for form in encodings(value)}
        self._forms = {token.encode(), *(form for form in whole if len(form) >= 16), *_base64(token)}

    @property
    def digests(self) -> dict[str, str]:
        return {name: hashlib.sha256(value.encode()).hexdigest() for name, value in self.values.items()}

    def arrived(self, log: str) -> bool:
        """Whether the run has had every value as it is."""
        told = [line.removeprefix("arrived ") for line in log.splitlines() if line.startswith("arrived ")]
        return bool(told) and json.loads(told[-1]) == self.digests

    def is_in(self, data: bytes | str) -> bool:
        raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        return any(form in raw for form in self._forms)

    def files(self, *folders: Path) -> list[Path]:
        """Those in which one of them is, in any form."""
        return [path for path in _files(folders) if self.is_in(_read(path))]

    def listed(self) -> list[str]:
        """Processes whose command line shows one."""
        return [line for _, line in _processes("cmdline") if self.is_in(line)]

    def beside_the_run(self) -> list[str]:
        """Processes other than the run's own that were started with one in their environment."""
        found = [(pid, data) for pid, data in _processes("environ") if self.is_in(data)]
        return [_name(pid) for pid, data in found if "\0HOSTLER_RUN=" not in f"\0{data}"]


class Hold:
    """A file for which the run waits when it has printed all; `seen`: its folder as the run sees it."""

    def __init__(self, folder: Path, seen: str = "") -> None:
        self.path = folder / "hold"
        folder.mkdir(exist_ok=True)
        self.path.touch()
        self.seen = f"{seen or folder}/hold"

    def waits(self) -> bool:
        return self.path.with_name("hold.waits").exists()

    def let_go(self) -> None:
        self.path.unlink()
        self.path.with_name("hold.waits").unlink()


def script(hold: Hold | None = None) -> str:
    return TRAIN.replace("HOLD", repr(hold.seen if hold else ""))


def private(path: Path) -> bool:
    """Whether only its owner gets at it."""
    return not path.stat().st_mode & 0o077 and not path.parent.stat().st_mode & 0o077


def until(check: Callable[[], bool], story: Callable[[], str] = str, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, story()
        time.sleep(0.1)


def _base64(token: str) -> Iterator[bytes]:
    """Of what it is a part of, whatever comes before it."""
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + token.encode())
        yield text[4:-4]


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it went meanwhile
        return b""


def _processes(what: str) -> Iterator[tuple[str, str]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            yield folder.name, _read(folder / what).decode("utf-8", "surrogateescape")


def _name(pid: str) -> str:
    return f"{pid} {_read(Path('/proc', pid, 'cmdline')).decode(errors='replace')}"
