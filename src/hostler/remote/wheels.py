"""The store driver for another machine, as a wheel for its Python and platform.

Where the one that is installed here would do there, it is packed again, without a network; else pip is asked
for the right one. Equal content has equal bytes, so that its hash names it.
"""

from __future__ import annotations

import io
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from hostler.errors import MachineError
from hostler.frozen import dataclass
from hostler.remote.library_zip import TIME, sha_of

DRIVER = "obstore"
_MINOR = re.compile(r"cp3(\d+)")


@dataclass(frozen=True)
class WheelTarget:
    """Facts that decide the wheel: its Python; its system, processor, C library and that one's version."""

    python: tuple[int, int]
    platform: tuple[str, ...]


def machine(python: str, system: Sequence[str]) -> WheelTarget:
    major, minor = python.split(".")[:2]
    return WheelTarget((int(major), int(minor)), tuple(system))


def here() -> WheelTarget:
    own = (sys.platform, platform.machine(), *platform.libc_ver())
    return WheelTarget(sys.version_info[:2], own)


def drivers_for(wanted: WheelTarget, cache: Path) -> list[Path]:
    """Files with the driver and what it requires, for such a machine, in the cache."""
    try:
        own = metadata.distribution(DRIVER)
    except metadata.PackageNotFoundError:
        raise MachineError(
            f"{DRIVER} is not installed here", f"pip install 'hostler[buckets]', which is {DRIVER}"
        ) from None
    return [_one(name, wanted, cache) for name in (DRIVER, *_required(own))]


def _one(name: str, wanted: WheelTarget, cache: Path) -> Path:
    own = metadata.distribution(name)
    if fits(tags_of(own.read_text("WHEEL") or ""), here(), wanted):
        return _kept(cache, own)
    return _asked_for(name, own.version, wanted, cache)


def _required(own: metadata.Distribution) -> list[str]:
    """Names of what it requires and is installed here."""
    lines = [line for line in own.requires or () if "extra ==" not in line]
    names = [match[0] for line in lines if (match := re.match(r"[\w.-]+", line))]
    return [name for name in names if _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def tags_of(wheel: str) -> list[str]:
    return [line.partition(":")[2].strip() for line in wheel.splitlines() if line.startswith("Tag:")]


def fits(tags: Sequence[str], built_on: WheelTarget, wanted: WheelTarget) -> bool:
    """Whether a wheel with these tags that works on one machine works on another. Pure."""
    if not _as_new(built_on.platform, wanted.platform):
        return False
    return any(_runs(tag, wanted.python) for tag in tags)


def _as_new(built_on: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """The same kind of system, with a C library at least as new."""
    same, version = built_on[:3] == wanted[:3], (built_on[3:4], wanted[3:4])
    return same and _numbers(version[1]) >= _numbers(version[0])


def _numbers(version: tuple[str, ...]) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version[0])] if version else []


def _runs(tag: str, python: tuple[int, int]) -> bool:
    interpreter, abi, _ = tag.split("-", 2)
    if interpreter.startswith("py3"):
        return True
    match = _MINOR.fullmatch(interpreter)
    if match is None:
        return False
    return python[1] >= int(match[1]) if abi == "abi3" else python == (3, int(match[1]))


def platforms(wanted: WheelTarget) -> list[str]:
    """The names that wheels give to such a machine, newest first. Pure."""
    system, processor, libc, version = (*wanted.platform, "", "", "", "")[:4]
    if system == "darwin":
        return [f"macosx_{n}_0_{processor}" for n in range(15, 10, -1)]
    if libc == "musl" or (system == "linux" and not libc):
        return [f"musllinux_1_{n}_{processor}" for n in (2, 1)]
    newest = (_numbers((version,)) or [2, 17])[1]
    return [f"manylinux_2_{n}_{processor}" for n in range(newest, 16, -1)] + [f"manylinux2014_{processor}"]


def _system(wanted: WheelTarget) -> str:
    """As `linux x86_64 with glibc 2.36`."""
    system, processor, libc, version = (*wanted.platform, "", "", "", "")[:4]
    return f"{system} {processor}".strip() + (f" with {libc} {version}".rstrip() if libc else "")


def _packed(own: metadata.Distribution) -> bytes:
    target = io.BytesIO()
    names = sorted(
        str(file) for file in own.files or () if ".." not in str(file) and "__pycache__" not in str(file)
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for name in names:
            if not name.endswith(("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")):
                info = zipfile.ZipInfo(name, TIME)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o755 << 16
                packed.writestr(info, Path(str(own.locate_file(name))).read_bytes())
    return target.getvalue()


def _kept(cache: Path, own: metadata.Distribution) -> Path:
    """Packed once, which takes a second: RECORD has the hash of every file that was installed."""
    folder = cache / "drivers"
    folder.mkdir(parents=True, exist_ok=True)
    installed = sha_of((own.read_text("RECORD") or "").encode())
    path = folder / f"{own.name}-{own.version}-{installed[:16]}.whl"
    if not path.is_file():
        fresh = path.with_suffix(".tmp")
        fresh.write_bytes(_packed(own))
        fresh.replace(path)
    return path


def _asked_for(package: str, version: str, wanted: WheelTarget, cache: Path) -> Path:
    """The same version if there is one for that machine, else the newest that there is."""
    name = f"py{wanted.python[0]}.{wanted.python[1]}-" + "-".join(filter(None, wanted.platform))
    folder = cache / "drivers" / f"{package}-{version}-{name}"
    paths = sorted(folder.glob("*.whl"))
    if paths:
        return paths[0]
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    words += ["--python-version", "{}.{}".format(*wanted.python), "--dest", str(folder)]
    words += [word for one in platforms(wanted) for word in ("--platform", one)]
    for what in (f"{package}=={version}", package):
        done = subprocess.run([*words, what], capture_output=True, text=True)
        paths = sorted(folder.glob("*.whl"))
        if paths and not done.returncode:
            break
    else:
        shutil.rmtree(folder, ignore_errors=True)
        text = (done.stderr.strip().splitlines() or ["pip found none"])[-1]
        raise MachineError(
            f"no {package} for Python {wanted.python[0]}.{wanted.python[1]} on {_system(wanted)}: {text}",
            f"put it there yourself: `pip install {package}` on the machine, or in its image",
        )
    return paths[0]
