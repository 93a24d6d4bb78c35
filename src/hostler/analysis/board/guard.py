"""Who may see the dashboard, and who may act through it.

Every request must name a host that this dashboard was started for (a page elsewhere whose name leads here
names another). Beyond loopback, and wherever one was asked for, every request carries a token, compared in
constant time. A request that changes something also comes from this very origin and carries the page's own
secret, which no other site can read.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

COOKIE = "hostler-token"
CSRF = "x-hostler-csrf"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """What this dashboard was started with; decides over plain headers."""

    host: str
    port: int
    token: str = ""  # '' only on loopback
    names: tuple[str, ...] = ()  # further names it is reached by
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def knows_host(self, given: str) -> bool:
        """Whether a Host header is one of ours. An address cannot be rebound; a name can."""
        name, _, port = _split(given)
        if port != str(self.port):
            return False
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return name in self.names
        return name in {self.host, *self.names, socket.gethostname()} or _is_address(name)

    def admits(self, given: str | None) -> bool:
        """Whether this token, from the address, a cookie or a header, opens the page."""
        return not self.token or hmac.compare_digest((given or "").encode(), self.token.encode())

    def may_act(self, headers: Mapping[str, str]) -> bool:
        """Whether a request that changes something is this page's own."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if origin is None or origin not in (f"http://{host}", f"https://{host}"):
            return False
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return False
        return hmac.compare_digest(headers.get(CSRF, "").encode(), self.csrf.encode())


def _split(given: str) -> tuple[str, str, str]:
    """(name, ':', port) of a Host header; without a port it is 80."""
    if given.startswith("["):
        name, _, rest = given[1:].partition("]")
        return name, ":", rest.lstrip(":") or "80"
    name, _, port = given.partition(":")
    return name.lower(), ":", port or "80"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
