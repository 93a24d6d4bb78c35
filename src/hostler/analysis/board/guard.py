"""The rules by which a request is let in.

Every request names a host that this dashboard was started for (a page elsewhere whose name leads here names
another), and no other origin has sent it: another port of this machine is another origin. Every request but
for the page's own files carries the token in a header, compared in constant time: no other site can set that
header, and a cookie would go to every port of this machine. A request that changes something also says that
it comes from this very origin.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Mapping, Sequence

from hostler.frozen import dataclass

QUERY = 16_000  # characters of a query
PARAMETERS = 200  # in a query
BODY = 2_000_000  # bytes: the ids of a hundred thousand runs
STREAMS = 32  # streams of changes that one address may hold open


def policy(scripts: Sequence[str] = (), styles: Sequence[str] = ()) -> str:
    """The header by which a page loads our own files alone, and runs inside it only what has these sums."""
    script, style = (" ".join(["'self'", *(f"'sha256-{one}'" for one in sums)]) for sums in (scripts, styles))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


HEADERS = {
    "Content-Security-Policy": policy(),
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
    """Decides over plain headers."""

    host: str
    port: int
    token: str
    names: tuple[str, ...] = ()  # further names it is reached by

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

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the token."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())

    def is_foreign(self, headers: Mapping[str, str], path: str) -> bool:
        """Whether another origin sent a request. Any site may link to the page, which holds no data."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        if origin is not None and not _is_own(origin, headers):
            return True
        opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site not in ("same-origin", "none") and not (path == "/" and opened)

    def may_act(self, headers: Mapping[str, str]) -> bool:
        """Whether a request that changes something is this page's own."""
        return _is_own(headers.get("origin", ""), headers)


def is_too_long(query: bytes) -> bool:
    """Whether a query asks for more than the page ever does; decided before it is taken apart."""
    return len(query) > QUERY or query.count(b"&") >= PARAMETERS


def _is_own(origin: str, headers: Mapping[str, str]) -> bool:
    host = headers.get("host", "")
    return origin in (f"http://{host}", f"https://{host}")


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
