"""The boot program of a VM: brings hostler from the store, keeps a worker, and removes the VM at its end.

Sent as text in the VM's metadata and run by whatever Python the image has, so it imports nothing of hostler.
A VM that cannot work removes itself, so that none waits for its deadline at somebody's cost. One that is
being preempted does not: its group brings it back.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

OLDEST = (3, 10)
TRIES = 6  # of one download
FINAL = (0, 1, 2)  # how a worker ends that has left, or that this VM won't do for
GOING = (75, 143, 130)  # how a worker ends that was told to go: its VM is being taken away
SPARED = 300.0  # seconds after which a VM that was to be taken away, and was not, works again
TOLD = 10.0  # seconds that a VM which won't do stays, so that whoever watches can read why
LEFT = 60.0  # seconds that a worker's own way of removing its VM may take
AGAIN = 20.0  # seconds between two tries of a VM to remove itself
SETTINGS = "instance/attributes/hostler-settings"


class Unfit(Exception):
    """This VM won't do; the text says why."""


def main() -> int:
    settings = told()
    for name, value in settings["variables"].items():
        os.environ[name] = value
    report("began")
    try:
        check(settings)
        places = bring(settings)
        code = work(settings, places)
        while code in GOING:
            time.sleep(SPARED)
            code = work(settings, places)
    except Unfit as error:
        report(f"failed: {error}")
        code = 1
    except Exception:
        report(f"failed: {traceback.format_exc().strip().splitlines()[-1]}")
        traceback.print_exc()
        code = 1
    if "idle" not in settings:  # who watches itself for being idle leaves its removal to us
        time.sleep(TOLD if code else LEFT)
    remove(settings)
    return code


def told() -> dict[str, Any]:
    """Settings of this VM. Nothing can be done before it has them, not even its own removal."""
    while True:
        try:
            found: dict[str, Any] = json.loads(metadata(SETTINGS))
            return found
        except OSError as error:
            print(
                f"hostler: failed: the metadata server does not tell what this VM is for: {error}; asked "
                "again, until Compute Engine removes the VM at its deadline",
                flush=True,
            )
        time.sleep(AGAIN)


def check(settings: dict[str, Any]) -> None:
    if sys.version_info[:2] < OLDEST:
        raise Unfit(
            f"Python {platform.python_version()} is too old, hostler needs 3.10 or newer: choose another"
        )
    if time.time() >= settings["deadline"]:
        raise Unfit("the fleet's deadline is over")


def bring(settings: dict[str, Any]) -> list[str]:
    """Folders with hostler and what it needs besides, unpacked once for each content."""
    cache = os.environ.get("HOSTLER_CACHE") or os.path.join(str(Path.home()), ".cache", "hostler")
    places = []
    for key, sha in settings["parcels"]:
        folder = os.path.join(cache, key.split("/")[0])
        place = os.path.join(folder, sha)
        for level in (cache, folder):
            os.makedirs(level, 0o700, exist_ok=True)
            closed(level)
        if not os.path.isdir(place):
            unpack(download(settings["store"], key), sha, place)
        closed(place)
        places.append(place)
    return places


def closed(path: str) -> None:
    """Unfit if another user of the VM made the folder or can write to it: it would run as this one."""
    facts = os.stat(path)
    if facts.st_uid not in (os.geteuid(), 0) or facts.st_mode & 0o022:
        raise Unfit(f"other users can write to {path}; name another folder under `cache:`")


def unpack(data: bytes, sha: str, place: str) -> None:
    """Beside its place first, so that nobody finds half of it."""
    if hashlib.sha256(data).hexdigest() != sha:
        raise Unfit("what the store holds of hostler is damaged")
    fresh = f"{place}.{os.getpid()}.tmp"
    Path(fresh).mkdir(0o700)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        packed.extractall(fresh)
    Path(fresh).rename(place)


def download(store: str, key: str) -> bytes:
    bucket, _, prefix = store[len("gs://") :].partition("/")
    name = "/".join(part for part in (prefix.strip("/"), key) if part)
    base = os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
    base = base if "://" in base else "http://" + base
    url = "{}/storage/v1/b/{}/o/{}?alt=media".format(base, bucket, urllib.parse.quote(name, safe=""))
    said = ""
    for n in range(TRIES):
        try:
            return fetch(url)
        except urllib.error.HTTPError as error:
            said = f"{error.code} {error.reason}"
            if error.code in (403, 404):
                break
        except OSError as error:
            said = str(error)
        time.sleep(min(2.0**n, 15.0))
    raise Unfit(f"{key} cannot be read from {store}: {said}; does the VM's account have the bucket?")


def work(settings: dict[str, Any], places: list[str]) -> int:
    """A worker, to its end; one that was killed is followed by another."""
    code = 0
    for n in range(TRIES):
        code = keep(settings, places)
        if code in FINAL or code in GOING:
            break
        time.sleep(min(2.0**n, 15.0))
    return code


def keep(settings: dict[str, Any], places: list[str]) -> int:
    """Keep a worker; the shutdown script finds it by its process number."""
    words = [sys.executable, "-m", "hostler.worker", settings["store"], "--host", "gce"] + settings["worker"]
    if "idle" in settings:
        words = [sys.executable, "-m", "hostler.worker.hand_machine", "gce", str(settings["idle"])]
        words += [settings["store"], settings["launch"]]
    theirs = dict(os.environ, PYTHONPATH=os.pathsep.join(places), HOME=str(Path.home()))
    theirs.setdefault("HOSTLER_ADDRESS", inside())
    process = subprocess.Popen(words, env=theirs, cwd=str(Path.home()))
    with open(os.path.join(os.environ.get("XDG_RUNTIME_DIR") or "/run", "hostler-worker.pid"), "w") as file:
        file.write(str(process.pid))
    code = process.wait()
    return code if code >= 0 else 128 - code


def inside() -> str:
    """By which address other VMs of the network reach this one; '' if nobody can tell."""
    try:
        return metadata("instance/network-interfaces/0/ip").strip()
    except OSError:
        return ""


def remove(settings: dict[str, Any]) -> None:
    """Until it is gone: from its group, which then does not bring it back, or by itself."""
    while True:
        print("hostler: this VM removes itself", flush=True)
        try:
            own, group = places()
        except OSError as error:
            print(f"hostler: its name is not known: {error}", flush=True)
        else:
            if not call(settings, "POST", group + "/deleteInstances", {"instances": [own]}):
                call(settings, "DELETE", own, None)
        time.sleep(AGAIN)


def places() -> tuple[str, str]:
    """This VM and its group, as Compute Engine names them."""
    zone = metadata("instance/zone").rsplit("/", 1)[-1]
    name = metadata("instance/name")
    region, group = zone.rsplit("-", 1)[0], name.rsplit("-", 1)[0]
    return f"zones/{zone}/instances/{name}", f"regions/{region}/instanceGroupManagers/{group}"


def call(settings: dict[str, Any], verb: str, path: str, body: Any) -> bool:
    base = os.environ.get("HOSTLER_GCE_ENDPOINT") or "https://compute.googleapis.com"
    root = base if base.rstrip("/").endswith("/compute/v1") else base.rstrip("/") + "/compute/v1"
    url = "{}/projects/{}/{}".format(root, settings["project"], path)
    try:
        fetch(url, verb, json.dumps(body).encode() if body is not None else None)
    except OSError as error:
        print(f"hostler: {verb} {path}: {error}", flush=True)
        return False
    return True


def fetch(url: str, verb: str = "GET", body: bytes | None = None) -> bytes:
    """With the VM's own account."""
    token = json.loads(metadata("instance/service-accounts/default/token"))["access_token"]
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    asked = urllib.request.Request(url, body, headers, method=verb)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        data: bytes = answer.read()
        return data


def metadata(path: str, value: str | None = None) -> str:
    """Asked again if the server does not answer for a moment; OSError if it does not at all."""
    for n in range(TRIES):
        try:
            return ask(path, value)
        except OSError as error:
            if n == TRIES - 1 or (isinstance(error, urllib.error.HTTPError) and error.code < 500):
                raise
        time.sleep(min(2.0**n, 15.0) / 2)
    raise AssertionError("the last try answers or raises")


def ask(path: str, value: str | None) -> str:
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    asked = urllib.request.Request(
        f"http://{host}/computeMetadata/v1/{path}",
        None if value is None else value.encode(),
        {"Metadata-Flavor": "Google"},
        method="GET" if value is None else "PUT",
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=30) as answer:
        return str(answer.read().decode())


def report(state: str) -> None:
    """For who waits at the other end; nothing depends on it."""
    print(f"hostler: {state}", flush=True)
    try:
        metadata("instance/guest-attributes/hostler/state", state)
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main())
