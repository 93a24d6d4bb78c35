"""The boot program of a VM: brings hostler from the store, keeps a worker, and removes the VM at its end.

Sent as one text (`remote/standalone.py`) in the VM's metadata and run by whatever Python the image has.
A VM that cannot work removes itself, so that none waits for its deadline at somebody's cost. One that is
being preempted does not: its group brings it back.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request

from hostler.backends.fetch import fetch, fetch_bytecode, fetch_object, google_object
from hostler.backends.metadata import get_attribute, get_metadata, get_token, put_guest_attribute
from hostler.backends.store_check import check_store
from hostler.env import cloud_endpoint
from hostler.errors import HostlerError, MachineError
from hostler.remote.install import install_in_cache

OLDEST = (3, 10)
WORKERS = 6  # that follow each other, where each is killed
FINAL = (0, 1, 2)  # how a worker ends that has left, or that this VM won't do for
GOING = (75, 143, 130)  # how a worker ends that was told to go: its VM is being taken away
SPARED = 300.0  # seconds after which a VM that was to be taken away, and was not, works again
TOLD = 10.0  # seconds that a VM which won't do stays, so that whoever watches can read why
LEFT = 60.0  # seconds that a worker's own way of removing its VM may take
AGAIN = 20.0  # seconds between two tries of a VM to remove itself


def main() -> int:
    settings = told()
    for name, value in settings["variables"].items():
        os.environ[name] = value
    report("began")
    try:
        check(settings)
        places = bring(settings)
        check_store(settings["store"], places, lambda: download(settings["store"], settings["parcels"][0][0]))
        code = work(settings, places)
        while code in GOING:
            time.sleep(SPARED)
            code = work(settings, places)
    except HostlerError as error:
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
            attribute: dict[str, Any] = get_attribute("hostler-settings")
            return attribute
        except OSError as error:
            print(
                f"hostler: failed: the metadata server does not tell what this VM is for: {error}; asked "
                "again, until Compute Engine removes the VM at its deadline",
                flush=True,
            )
        time.sleep(AGAIN)


def check(settings: dict[str, Any]) -> None:
    if sys.version_info[:2] < OLDEST:
        raise MachineError(
            f"Python {platform.python_version()} is too old, hostler needs 3.10 or newer: choose another"
        )
    if time.time() >= settings["deadline"]:
        raise MachineError("the fleet's deadline is over")


def bring(settings: dict[str, Any]) -> list[str]:
    """Folders with hostler and what it needs besides."""
    get = partial(download, settings["store"])
    return [
        install_in_cache(key.split("/")[0], sha, partial(get, key), partial(fetch_bytecode, get, key))
        for key, sha in settings["parcels"]
    ]


def download(store: str, key: str) -> bytes:
    return fetch_object(lambda: google_object(store, key, get_token()), store, key)


def work(settings: dict[str, Any], places: list[str]) -> int:
    """A worker, to its end; one that was killed is followed by another."""
    code = 0
    for n in range(WORKERS):
        code = keep(settings, places)
        if code in FINAL or code in GOING:
            break
        time.sleep(min(2.0**n, 15.0))
    return code


def keep(settings: dict[str, Any], places: list[str]) -> int:
    """Keep a worker; the shutdown script finds it by its process number."""
    words = [sys.executable, "-m", "hostler.worker", settings["store"], "--host", "gce", "--checked"]
    words += settings["worker"]
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
        return get_metadata("instance/network-interfaces/0/ip").strip()
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
    zone = get_metadata("instance/zone").rsplit("/", 1)[-1]
    name = get_metadata("instance/name")
    region, group = zone.rsplit("-", 1)[0], name.rsplit("-", 1)[0]
    return f"zones/{zone}/instances/{name}", f"regions/{region}/instanceGroupManagers/{group}"


def call(settings: dict[str, Any], verb: str, path: str, body: Any) -> bool:
    """Ask Compute Engine, with the VM's own account; False if it does not do it."""
    base = (cloud_endpoint() or "https://compute.googleapis.com").rstrip("/")
    root = base if base.endswith("/compute/v1") else base + "/compute/v1"
    data = json.dumps(body).encode() if body is not None else None
    try:
        headers = {"Authorization": "Bearer " + get_token(), "Content-Type": "application/json"}
        fetch(
            Request("{}/projects/{}/{}".format(root, settings["project"], path), data, headers, method=verb)
        )
    except OSError as error:
        print(f"hostler: {verb} {path}: {error}", flush=True)
        return False
    return True


def report(state: str) -> None:
    """For who waits at the other end; nothing depends on it."""
    print(f"hostler: {state}", flush=True)
    try:
        put_guest_attribute("state", state)
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main())
