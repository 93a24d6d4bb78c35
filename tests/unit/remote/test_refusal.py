from __future__ import annotations

import pytest

from hostler.errors import HostUnreachable
from hostler.remote.refusal import read

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Offending ED25519 key in /home/me/.ssh/known_hosts:12
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("said", "code", "message", "again"),
    [
        (CHANGED, 255, "not the one that is known: /home/me/.ssh/known_hosts, line 12", False),
        ("Host key verification failed.", 255, "its host key is not known here", False),
        (
            "No ED25519 host key is known for n1 and you have requested strict checking.",
            255,
            "not known",
            False,
        ),
        ("me@n1: Permission denied (publickey).", 255, "refused the login: me@n1: Permission denied", False),
        ("Received disconnect: Too many authentication failures", 255, "refused the login", False),
        (
            "ssh: Could not resolve hostname n1: Name or service not known",
            255,
            "no machine of that name",
            True,
        ),
        ("ssh: connect to host n1 port 22: Connection refused", 255, "cannot be reached: ssh: connect", True),
        ("ssh: connect to host n1 port 22: No route to host", 255, "No route to host", True),
        ("kex_exchange_identification: Connection closed by remote host", 255, "closed by remote host", True),
        ("", 255, "the connection ended", True),
        ("", -9, "the connection ended", True),
        (
            "/root/.ssh/config: line 3: Bad configuration option: colour",
            255,
            "refused its configuration",
            False,
        ),
        ("tar: write error: No space left on device", 2, "No space left on device", False),
    ],
)
def test_ssh_errors_are_one_line_and_retryable_or_not(
    said: str, code: int, message: str, again: bool
) -> None:
    error = read("n1", said, code)
    assert message in error.message and error.message.startswith("n1") and "\n" not in str(error)
    assert error.hint
    assert isinstance(error, HostUnreachable) is again
