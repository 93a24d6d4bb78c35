"""Sends a message to addresses that are in variables: by Apprise where it is installed, else as a web hook.

An address is a secret: it is never written or said, its variable's name is.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence

from hostler import env

WAIT = 20.0  # seconds for a server's answer

Say = Callable[[str], None]


def reachable(names: Sequence[str]) -> list[str]:
    """The variables that hold an address on this machine."""
    return [name for name in names if env.secret(name)]


def send(names: Sequence[str], title: str, lines: Sequence[str], say: Say) -> bool:
    """Whether any service took it."""
    took = False
    for name in reachable(names):
        problem = _send(str(env.secret(name)), title, "\n".join(lines))
        took = took or not problem
        if problem:
            say(f"the message to ${name} was not sent: {problem}")
    return took


def _send(address: str, title: str, body: str) -> str:
    """Send to an address; returns the problem, '' if it was sent."""
    try:
        import apprise
    except ModuleNotFoundError:
        return _post(address, title, body)
    service = apprise.Apprise()
    if not service.add(address):
        return "Apprise does not understand its address"
    return "" if service.notify(body=body, title=title) else "the service refused it"


def _post(address: str, title: str, body: str) -> str:
    if not address.startswith(("http://", "https://")):
        return "its address needs Apprise (pip install 'hostler[notify]')"
    data = json.dumps({"text": f"{title}\n{body}", "title": title}).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT):
            return ""
    except urllib.error.HTTPError as error:
        return f"the server answered {error.code}"
    except (OSError, ValueError) as error:
        return type(error).__name__
