"""The key by which a person gets onto machines that hostler makes: one for each project, made at first use.

Its private half never leaves this machine.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from hostler import private
from hostler.errors import MachineError


def public_key(folder: Path) -> str:
    """The public half of the key in this folder; made if there is none."""
    private.own_folder(folder, private.ANOTHER_CACHE)
    public = private_key(folder).with_suffix(".pub")
    if not public.is_file():
        _make(private_key(folder))
    return public.read_text().strip()


def private_key(folder: Path) -> Path:
    return folder / "id_ed25519"


def remember_host(folder: Path, name: str, keys: tuple[str, ...]) -> Path:
    """A file that names this machine's keys and no others."""
    private.own_folder(folder, private.ANOTHER_CACHE)
    path = folder / f"known-{name}"
    path.write_text("".join(f"{name} {key}\n" for key in keys))
    return path


def _make(path: Path) -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "hostler", "-f", str(path)]
    try:
        subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise MachineError(
            "ssh-keygen is not installed on this machine", "install OpenSSH's client"
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise MachineError(f"the key could not be made: {said}", f"is there room at {path.parent}?") from None
