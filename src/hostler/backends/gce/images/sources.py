"""Base of an image or a fleet: an image, family or VM that must exist; errors name the nearest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hostler.backends.gce.client import Body, GceClient, GceRefusal
from hostler.backends.gce.names import last
from hostler.errors import CloudError
from hostler.spec.nearest import nearest


def check_image(client: GceClient, url: str) -> None:
    """CloudError if the image or family does not exist; an address without a project is in ours."""
    parts = url.split("/")
    project = parts[parts.index("projects") + 1] if "projects" in parts[:-1] else client.project
    gce_client = client if project == client.project else replace(client, project=project)
    is_family, name = "family" in parts[:-1], last(url)
    try:
        record = gce_client.find(f"global/images/{'family/' if is_family else ''}{name}")
    except GceRefusal as error:
        if project == client.project or error.status != 403:
            raise
        return  # who may use it may not be allowed to look at it
    if record is None:
        what = "family" if is_family else "image"
        raise CloudError(f"no {what} named {name!r} in {project}", _near(gce_client, name, is_family))


def vm(client: GceClient, name: str) -> Body:
    """The VM of this name, wherever it is."""
    there = [*client.aggregated("instances")]
    rows = [record for record in there if record["name"] == name]
    if len(rows) == 1:
        return rows[0]
    if rows:
        zones = ", ".join(sorted(last(record["zone"]) for record in rows))
        raise CloudError(f"{len(rows)} VMs of {client.project} are named {name}: in {zones}", "rename one")
    near = nearest(name, (str(record["name"]) for record in there))
    raise CloudError(
        f"no VM named {name!r} in {client.project}",
        f"nearest: {', '.join(near)}" if near else "gcloud compute instances list shows them",
    )


def boot_disk(vm: Body) -> str:
    for disk in vm.get("disks", ()):
        if disk.get("boot"):
            return last(str(disk["source"]))
    raise CloudError(f"{vm['name']} has no boot disk", "name another VM")


def _near(client: GceClient, name: str, is_family: bool) -> str:
    names = _names(client.list("global/images"), "family" if is_family else "name")
    near = nearest(name, names)
    if near:
        return f"nearest: {', '.join(near)}"
    return f"hostler image build --family {name} makes one" if is_family else "check `image`"


def _names(found: Iterable[Body], key: str) -> list[str]:
    return sorted({str(record[key]) for record in found if record.get(key)})
