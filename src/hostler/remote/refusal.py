"""Reads ssh's last words: an error to show, and whether trying again may help. Pure.

HostUnreachable: the link, or a machine that is down; it may come back. HostError: something to put right.
"""

from __future__ import annotations

import re

from hostler.errors import HostError, HostUnreachable

_CHANGED = re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED|Offending .* key in (\S+)")
_OFFENDING = re.compile(r"Offending \S+ key in (\S+?):(\d+)")
_UNKNOWN = re.compile(r"Host key verification failed|No \S+ host key is known for")
_DENIED = re.compile(r"Permission denied|Too many authentication failures|no such identity|Load key ")
_NAME = re.compile(r"Could not resolve hostname|Name or service not known|nodename nor servname")
_OPTION = re.compile(
    r"Bad configuration option|unknown option|Bad owner or permissions|configuration options?"
)
_NOISE = re.compile(r"^(\*\*|Warning:|@|debug\d|Authorized uses|$)")


def read(host: str, said: str, code: int | None) -> HostError:
    """The error for an ssh to `host` that ended with `code` after saying this."""
    last = last_line(said)
    if _CHANGED.search(said):
        return HostError(f"{host}: its host key is not the one that is known: {_where(said)}", _CHANGED_HINT)
    if _UNKNOWN.search(said):
        return HostError(
            f"{host}: its host key is not known here, so it is not trusted",
            f"connect once by hand and compare the key: ssh {host}",
        )
    if _DENIED.search(said):
        return HostError(
            f"{host} refused the login: {_matching(_DENIED, said)}",
            "check user and key; does `ssh -o BatchMode=yes` log in without asking?",
        )
    if _NAME.search(said):
        return HostUnreachable(f"{host}: no machine of that name was found", "check its name, or the network")
    if _OPTION.search(said):
        return HostError(f"{host}: ssh refused its configuration: {last}", "check ~/.ssh/config")
    if code == 255 or code is None or code < 0:
        return HostUnreachable(f"{host} cannot be reached: {last or 'the connection ended'}", "is it up?")
    return HostError(f"{host}: {last or f'the far side ended with {code}'}", f"does `ssh {host} true` work?")


def last_line(said: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in said.splitlines()]
    return next((line for line in reversed(lines) if not _NOISE.match(line)), "")


_CHANGED_HINT = "somebody may intercept it; if the machine was reinstalled, remove the old key: ssh-keygen -R"


def _where(said: str) -> str:
    match = _OFFENDING.search(said)
    return f"{match[1]}, line {match[2]}" if match else "it has changed"


def _matching(pattern: re.Pattern[str], said: str) -> str:
    return next((line.strip() for line in said.splitlines() if pattern.search(line)), "")
