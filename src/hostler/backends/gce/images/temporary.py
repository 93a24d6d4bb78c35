"""The temporary VM on which an image is made, as Compute Engine takes it. Pure.

Its time limit is the platform's own: it is deleted, with its disk, whether or not anybody still looks. Labels
say what it is and until when somebody may be building. No secret is in it: who sees the project may read it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hostler.backends.gce.scripts import PYTHONS, startup_script
from hostler.backends.gce.shape import GPUS, VmShape
from hostler.backends.gce.template import interface
from hostler.backends.images import Recipe
from hostler.errors import UsageError

FAMILY, UNTIL = "hostler-family", "hostler-until"
PREFIX = "hostler-image-"
STORAGE = "https://www.googleapis.com/auth/devstorage.read_only"  # scripts may fetch from buckets
LONGEST_NAME = 41  # of a family: an image's name has the time behind it
VALUE, ALL = 256 * 1024, 512 * 1024  # bytes of one value of metadata, and of all
ROOM = 64 * 1024  # bytes of it for our own
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

Body = dict[str, Any]


def check(recipe: Recipe) -> None:
    """UsageError for what Compute Engine would not take, before anything is asked of it."""
    if not _NAME.fullmatch(recipe.family) or len(recipe.family) > LONGEST_NAME:
        raise UsageError(
            f"{recipe.family!r} is not a valid family name",
            hint=f"small letters, digits and -, a letter first, {LONGEST_NAME} at most",
        )
    packed = json.dumps(dict(recipe.files))
    for what, text in ((recipe.script_name, recipe.script), (recipe.packages, packed)):
        if len(text.encode()) > VALUE:
            raise UsageError(
                f"{what} is too large for a VM's metadata: {len(text.encode()) / 1024:.0f} KB of 256",
                hint="put its content into a bucket, and fetch it inside the script",
            )
    if len(recipe.script.encode()) + len(packed.encode()) > ALL - ROOM:
        raise UsageError(
            f"{recipe.script_name} and {recipe.packages} are too large for a VM's metadata together",
            hint="build twice: the second image --from the first one's family",
        )


def labels(recipe: Recipe, until: float) -> dict[str, str]:
    return {FAMILY: recipe.family, UNTIL: str(int(until))}


def lasts(recipe: Recipe) -> int:
    """Seconds after which Compute Engine deletes the VM."""
    return int(recipe.longest)


def body(
    name: str,
    zone: str,
    found: VmShape,
    recipe: Recipe,
    word: str,
    marked: dict[str, str],
    cache: str,
    disk: str,
) -> Body:
    """`word` makes its success this build's own; `disk`: one that is there, instead of a new one."""
    made: Body = {
        "name": name,
        "machineType": f"zones/{zone}/machineTypes/{found.machine}",
        "labels": marked,
        "disks": [_disk(zone, found, marked, disk)],
        "networkInterfaces": [interface(found)],
        "serviceAccounts": [{"email": found.account, "scopes": [STORAGE]}],
        "scheduling": {
            "provisioningModel": "STANDARD",
            "automaticRestart": False,
            "onHostMaintenance": "TERMINATE" if found.gpus else "MIGRATE",
            "instanceTerminationAction": "DELETE",
            "maxRunDuration": {"seconds": str(lasts(recipe))},
        },
        "metadata": {"items": _metadata(name, recipe, word, cache)},
    }
    if found.attached:
        kind = f"zones/{zone}/acceleratorTypes/{GPUS[found.gpu].type}"
        made["guestAccelerators"] = [{"acceleratorType": kind, "acceleratorCount": found.gpus}]
    return made


def _disk(zone: str, found: VmShape, marked: dict[str, str], disk: str) -> Body:
    made: Body = {"boot": True, "autoDelete": True, "type": "PERSISTENT", "mode": "READ_WRITE"}
    if disk:
        return {**made, "source": disk}
    params = {
        "sourceImage": found.image,
        "diskSizeGb": str(found.disk),
        "diskType": f"zones/{zone}/diskTypes/{found.disk_type}",
        "labels": marked,
    }
    return {**made, "initializeParams": params}


def _metadata(name: str, recipe: Recipe, word: str, cache: str) -> list[Body]:
    told = {
        "name": name,
        "word": word,
        "seconds": recipe.seconds,
        "script": recipe.script_name if recipe.script else "",
        "packages": recipe.packages,
        "wishes": recipe.wishes,
        "clean": bool(recipe.vm),
        "cache": cache,
        "pythons": PYTHONS.split(),
    }
    items = {
        "hostler-image": json.dumps(told, sort_keys=True),
        "startup-script": startup_script("hostler.backends.gce.images.builder", (3, 7)),
        "enable-guest-attributes": "TRUE",
        "block-project-ssh-keys": "TRUE",
        "enable-oslogin": "FALSE",
    }
    items |= {"hostler-script": recipe.script} if recipe.script else {}
    items |= {"hostler-packages": json.dumps(dict(recipe.files))} if recipe.packages else {}
    return [{"key": key, "value": value} for key, value in items.items()]
