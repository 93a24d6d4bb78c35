"""A machine as a person writes it: `host`, `user@host:port`, or a name of ~/.ssh/config.

What is not said here is left to the ssh program and its configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from hostler.errors import UsageError
from hostler.frozen import dataclass

_TARGET = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<six>[^\]\s]+)\]|(?P<host>[^:@\s\[\]]+))(?::(?P<port>\d+))?"
)
_STORE = re.compile(r"ssh://([^/]*)(/.*)?", re.DOTALL)


@dataclass(frozen=True)
class SshTarget:
    host: str
    user: str | None = None
    port: int | None = None
    key: str | None = None
    jump: str | None = None
    known: str | None = None  # a file with its host keys, where they are known from elsewhere
    alias: str | None = None  # the name they have there

    def __str__(self) -> str:
        """As it is written, without what the configuration adds."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{user}{host}:{self.port}" if self.port else f"{user}{host}"

    @property
    def options(self) -> list[str]:
        """Options of the ssh program for it, besides the host's name."""
        words = ["-l", self.user] if self.user else []
        words += ["-p", str(self.port)] if self.port else []
        words += ["-i", str(Path(self.key).expanduser())] if self.key else []
        words += ["-J", self.jump] if self.jump else []
        if self.known:
            checks = (f"UserKnownHostsFile={self.known}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes")
            words += [word for check in checks for word in ("-o", check)]
        return words + (["-o", f"HostKeyAlias={self.alias}"] if self.alias else [])


def parse(
    text: str,
    *,
    user: str | None = None,
    port: int | None = None,
    key: str | None = None,
    jump: str | None = None,
) -> SshTarget:
    """`[user@]host[:port]`; the others hold where the text does not say."""
    match = _TARGET.fullmatch(text)
    host = (match["six"] or match["host"]) if match else ""
    number = int(match["port"]) if match and match["port"] else port
    named = match["user"] if match and match["user"] else user
    if (
        not host
        or host.startswith("-")
        or (named or "").startswith("-")
        or not 0 < (22 if number is None else number) < 65536
    ):
        raise UsageError(f"{text!r} is not a host", hint="for example gpu1, me@gpu1 or me@gpu1:2222")
    return SshTarget(host, named, number, key, jump)


def split_store(url: str) -> tuple[SshTarget, str]:
    """Host and path of `ssh://host/path`; `ssh://host/~/path` begins at the home folder there."""
    match = _STORE.fullmatch(url)
    path = unquote(match[2] or "") if match else ""
    if match is None or not path.strip("/"):
        raise UsageError(
            f"{url!r} names no folder", hint="for example ssh://host/data/runs or ssh://host/~/runs"
        )
    if "\0" in path:
        raise UsageError(f"{url!r}: no path has a zero byte")
    return parse(unquote(match[1])), path[1:] if path.startswith("/~/") else path
