"""Secrets of a launch: checked before it, put where its machines find them, removed if it is not started.

The store is the place where nothing better is configured: an object under a prefix that has rights of its
own, for machines that are told things which others may read. It goes when the launch is found gone
(`records/launch/launches.py`), whoever finds that.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hostler import env
from hostler.backends.base import Backend, Vault, Vaulted
from hostler.errors import MachineError, UsageError
from hostler.fleet.ready import say
from hostler.frozen import dataclass
from hostler.money.tariff import Funded
from hostler.records import layout
from hostler.records.body import encode
from hostler.spec.project import Fleet
from hostler.store import Store
from hostler.store.registry import open_at

LASTS = 24 * 3600.0  # seconds that secrets outlast the deadline of their launch, at most
LARGEST = 64 * 1024  # bytes of one secret: no place for them takes more
MARK_KEY = 32  # bytes of the key that marks are made with


def check_told(to: Sequence[str]) -> None:
    """A sweep is worth running without a message; that none will come is said at once."""
    if to and not any(map(env.secret, to)):
        say(f"no notice will be sent: {', '.join(to)} (under `notify:`) is not set here")


def check_secrets(names: Iterable[str]) -> None:
    """Before anything is submitted: a run without its secrets would only fail later."""
    wanted = list(dict.fromkeys(names))
    unset = [name for name in wanted if not (env.secret(name) or "").strip()]
    if unset:
        raise UsageError(
            f"not set here: {', '.join(unset)} (named under `secrets:`)",
            hint=f"export {' '.join(f'{name}=…' for name in unset)}, then submit again",
        )
    for name in wanted:
        _check_value(name, env.secret(name) or "")


def _check_value(name: str, value: str) -> None:
    """Every place for secrets takes text of this size."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise UsageError(
            f"{name} (named under `secrets:`) is not text in UTF-8", hint="encode it, for example as base64"
        ) from None
    if size > LARGEST:
        raise UsageError(
            f"{name} (named under `secrets:`) has {size} bytes; at most {LARGEST} are allowed",
            hint="store the path of a file that the machines have instead",
        )


@dataclass(frozen=True)
class LaunchSecrets:
    """The values that a launch's machines take from a vault; a launch without any needs none."""

    values: Mapping[str, str]
    vault: Vault | None

    def place(self, launch: str) -> str:
        """The address that its machines are told; '' if there is none."""
        return self.vault.place(launch, list(self.values)) if self.vault else ""

    def put(self, funded: Funded) -> None:
        if self.vault:
            self.vault.put(funded.name, self.values, (funded.deadline or time.time() + LASTS) + LASTS)

    def remove(self, launch: str) -> None:
        if self.vault:
            self.vault.remove(launch, list(self.values))


def launch_secrets(engine: Backend, fleet: Fleet, url: str, values: Mapping[str, str]) -> LaunchSecrets:
    """With the vault of its backend, or the store; without one if the backend keeps secrets itself."""
    if not values or engine.capabilities.keeps_secrets:
        return LaunchSecrets(values, None)
    own = engine.vault(fleet) if isinstance(engine, Vaulted) else None
    return LaunchSecrets(values, own or ObjectVault(open_at(url)))


@dataclass(frozen=True)
class ObjectVault:
    store: Store

    def place(self, launch: str, names: Sequence[str]) -> str:
        return f"store:{_key(launch)}"

    def put(self, launch: str, values: Mapping[str, str], until: float) -> None:
        self.store.put(_key(launch), encode({"secrets": dict(values)}))

    def remove(self, launch: str, names: Sequence[str]) -> None:
        self.store.delete(_key(launch))


def _key(launch: str) -> str:
    from hostler.records.launch import launches  # few backends have no place for secrets

    return layout.secrets(*(launches.named(launch) or (launch, 1)))


def marks(values: Mapping[str, str], folder: Path) -> list[str]:
    """A mark for each secret, in order of their names: two launches know by them that theirs are the same.
    The key of marks is kept in `folder` and never leaves this machine, so that a reader of marks in the store
    can try out no value. A changed secret has another mark: no machine with the old one gets new runs."""
    if not values:
        return []
    key = _mark_key(folder / "fingerprints.key")
    return [f"{name}={_mark(key, name, value)}" for name, value in sorted(values.items())]


def _mark(key: bytes, name: str, value: str) -> str:
    text = f"{name}\0{value}".encode("utf-8", "surrogateescape")
    return hmac.new(key, text, hashlib.sha256).hexdigest()[:16]


def _mark_key(path: Path) -> bytes:
    """The machine's, made when it is first needed: the first of several who make one wins."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        if not path.is_file():
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(MARK_KEY))
            try:
                os.link(fresh, path)
            except FileExistsError:
                pass
            fresh.unlink()
        return path.read_bytes()
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}", "free space there, or fix its rights") from None
