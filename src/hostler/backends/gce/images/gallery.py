"""Images and leftovers of builds: found by their labels, removed by name."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from hostler.backends.gce import removal
from hostler.backends.gce.client import Body, GceClient
from hostler.backends.gce.images.temporary import FAMILY, UNTIL
from hostler.backends.gce.names import last
from hostler.backends.images import BuildLeftover, Image, moment

VM, DISK, IMAGE = "VM", "disk", "half-made image"
ORDER = (VM, DISK, IMAGE)


def images(client: GceClient, family: str = "") -> list[Image]:
    """Images that hostler put into families, or all of one family; the newest first."""
    wanted = f"family={family}" if family else f"labels.{FAMILY}:*"
    rows = [body for body in client.list("global/images", filter=wanted) if body.get("family")]
    rows.sort(key=lambda body: moment(str(body.get("creationTimestamp", ""))), reverse=True)
    newest = dict[str, str]()
    for body in rows:
        if _is_active(body):
            newest.setdefault(body["family"], body["name"])
    return [_image(body, newest.get(body["family"], "")) for body in rows]


def one(client: GceClient, path: str) -> Image:
    body = client.get(path)
    return _image(body, body["name"])


def drop(client: GceClient, found: Sequence[Image]) -> None:
    for image in found:
        removal.discard(client, f"global/images/{image.name}")


def leavings(client: GceClient, now: float | None = None) -> list[BuildLeftover]:
    moment = time.time() if now is None else now
    return [*_leavings(client, moment)]


def sweep_up(client: GceClient, found: Sequence[BuildLeftover]) -> None:
    """VMs first: their disks go with them."""
    for kind in ORDER:
        for thing in found:
            if thing.kind == kind:
                removal.discard(client, thing.path)


def _leavings(client: GceClient, now: float) -> Iterator[BuildLeftover]:
    wanted = f"labels.{UNTIL}:*"
    for kind, collection in ((VM, "instances"), (DISK, "disks")):
        for body in client.aggregated(collection, filter=wanted):
            zone = last(body.get("zone", ""))
            yield _leaving(kind, f"zones/{zone}/{collection}/{body['name']}", body, zone, now)
    for body in client.list("global/images", filter=wanted):
        if not body.get("family"):
            yield _leaving(IMAGE, f"global/images/{body['name']}", body, "", now)


def _leaving(kind: str, path: str, body: Body, where: str, now: float) -> BuildLeftover:
    labels = body.get("labels") or {}
    text = str(labels.get(UNTIL, ""))
    until = float(text) if text.isdigit() else 0.0
    return BuildLeftover(
        kind, body["name"], path, str(labels.get(FAMILY, "")), until, where, over=until <= now
    )


def _image(body: Body, newest: str) -> Image:
    return Image(
        body["name"],
        body["family"],
        str(body.get("creationTimestamp", "")),
        int(body.get("archiveSizeBytes", 0)),
        int(body.get("diskSizeGb", 0)),
        ready=body.get("status") == "READY",
        ours=FAMILY in (body.get("labels") or {}),
        newest=body["name"] == newest,
    )


def _is_active(body: Body) -> bool:
    return (
        body.get("status") == "READY"
        and str((body.get("deprecated") or {}).get("state") or "ACTIVE") == "ACTIVE"
    )
