"""Resolves `git: URL@ref` to a commit: asks the remote once, at submission.

The token travels in the environment alone, never among the arguments.
"""

from __future__ import annotations

import os
import re
import subprocess
from urllib.parse import urlsplit

from hostler import env
from hostler.errors import MachineError, MissingError, UsageError
from hostler.spec.formats import private
from hostler.spec.job import Source

TIMEOUT = 60.0  # seconds the remote has to answer
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def source(text: str, token_secret: str | None = None) -> Source:
    """The source a `git:` entry means, pinned to a commit."""
    url, ref = split(text)
    token = env.secret(token_secret) if token_secret else None
    if token_secret and not token:
        raise UsageError(f"the secret {token_secret} for {url} is not set", hint=f"export {token_secret}=…")
    return Source(git=url, ref=resolve(url, ref, token), token_secret=token_secret)


def split(text: str) -> tuple[str, str]:
    """(URL, ref); the ref is HEAD where none is given. `user@host` is not a ref."""
    url, at, ref = text.rpartition("@")
    scheme, _, rest = url.rpartition("://")
    has_path = "/" in rest or (not scheme and ":" in rest)
    if not at or not has_path or os.path.isdir(text):
        url, ref = text, "HEAD"
    if _holds_token(url):
        raise UsageError(
            "a git URL must not hold a password or a token",
            hint="take it out, export it as a variable, and name that: `git_token: GIT_TOKEN`",
        )
    if not url or url.startswith("-") or ref.startswith("-") or not ref:
        raise UsageError(
            f"{text!r} is not a git source", hint="write it as URL@branch, URL@tag or URL@commit"
        )
    return url, ref


def _holds_token(url: str) -> bool:
    """`https://user:token@host`, and `https://token@host`, where the user looks like one."""
    try:
        parts = urlsplit(url)
        user = parts.username or ""
    except ValueError:
        return False
    known = any(shape.fullmatch(user) for shape in private.SHAPES.values())
    return bool(parts.password) or (parts.scheme.startswith("http") and (known or private.looks_random(user)))


def resolve(url: str, ref: str, token: str | None = None) -> str:
    """The commit a branch, tag or HEAD of the remote stands at; a full commit is itself."""
    if _COMMIT.fullmatch(ref):
        return ref
    found = _remote_refs(url, ref, token)
    for name in (f"refs/tags/{ref}^{{}}", f"refs/heads/{ref}", f"refs/tags/{ref}", f"{ref}^{{}}", ref):
        if name in found:
            return found[name]
    raise MissingError(
        f"{url} has no branch or tag {ref!r}", hint="a commit must be given in full, 40 digits"
    )


def _remote_refs(url: str, ref: str, token: str | None) -> dict[str, str]:
    command = ["git", "ls-remote", "--", url, ref, f"{ref}^{{}}"]
    try:
        done = subprocess.run(
            command,
            env=env.for_git(url, token),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
        )
    except FileNotFoundError:
        raise MachineError("git is not installed here", hint="install git, or leave out `git:`") from None
    except subprocess.TimeoutExpired:
        raise MissingError(f"{url} did not answer within {TIMEOUT:.0f} s") from None
    if done.returncode != 0:
        hint = "check the URL, and the token of a private one"
        raise MissingError(f"cannot read {url}: {_why(done.stderr)}", hint=hint)
    rows = (line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
    return {name: commit for commit, name in rows}


def _why(said: str) -> str:
    """The line of git's that says what is wrong; general advice follows it."""
    lines = said.strip().splitlines() or ["git failed"]
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])
