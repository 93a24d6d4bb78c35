"""A fleet's wish: what its machines must have, where they may be; everything else is chosen by price. Pure.

`zones: any`, `us` or a region, `gpu` as a list, `cpus: 8+`, `memory: 32GB+` and `machine: any` are wishes. A
fleet with fixed zones and one machine is none.
"""

from __future__ import annotations

from dataclasses import field

from hostler.backends.gce import shape as shapes
from hostler.backends.gce.wish import places
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.spec.project import Fleet
from hostler.spec.units import size

GIB = 1 << 30
PLAIN = "e2-standard-4"  # where nothing at all is said of the machine
NEAR = 0.08  # of a memory without `+`: 32GB are 29.8 GiB, and a machine of 32 GiB is meant


@dataclass(frozen=True)
class Bound:
    """An amount, at least or exactly."""

    amount: float
    more: bool = True  # more will do, too
    text: str = ""
    near: float = 0.0  # so much of it may be missing or too much, where it is exact

    def holds(self, has: float) -> bool:
        return has >= self.amount if self.more else abs(has - self.amount) <= self.near * has


@dataclass(frozen=True)
class MachineWish:
    """`usual`: the only machines, each with its GPUs, where nothing is said of their size."""

    places: tuple[str, ...] = (places.ANY,)
    out: frozenset[str] = frozenset()  # zones and regions
    gpus: tuple[tuple[str, int], ...] = ()
    cpus: Bound | None = None
    memory: Bound | None = None  # GiB
    machine: str = ""  # '' for any
    usual: frozenset[tuple[str, str, int]] = field(default_factory=frozenset)
    spot: bool | str = True
    outgrown: int = 0  # bytes of a GPU that runs were out of memory on

    def takes(self, zone: str) -> bool:
        return any(places.lies_in(zone, place) for place in self.places)

    def excludes(self, zone: str) -> bool:
        return any(places.lies_in(zone, place) for place in self.out)


def is_wish(fleet: Fleet) -> bool:
    """Whether the fleet leaves something to be chosen by price."""
    values = fleet.options
    if values.get("mix") or any(values.get(key) is not None for key in ("cpus", "memory")):
        return True
    if values.get("machine") == places.ANY or isinstance(values.get("gpu"), (tuple, list)):
        return True
    return any(places.WIDE.fullmatch(zone) for zone in values.get("zones") or ())


def wish_of(fleet: Fleet, regions: set[str]) -> MachineWish:
    """The wish of a fleet's keys; UsageError for a name that is none. `regions`: those that are known."""
    values = fleet.options
    several = isinstance(values.get("gpu"), (tuple, list)) and len(set(values["gpu"])) > 1
    if values.get("mix") and not (several or values.get("machine") == places.ANY):
        raise UsageError(
            f"fleet {fleet.name}: `mix` has nothing to mix: it names one machine",
            hint="`gpu: [L4:1, A100:1]`, or `machine: any`",
        )
    found, out = tuple(values.get("zones") or (places.ANY,)), frozenset(values.get("exclude_zones") or ())
    for key, names in (("zones", found), ("exclude_zones", tuple(out))):
        for name in names:
            _check_place(fleet, key, name, regions)
    asked = values.get("gpu") or ()
    gpus = tuple(shapes.gpu_of(fleet, one) for one in ((asked,) if isinstance(asked, str) else asked))
    machine = str(values.get("machine") or "")
    cpus, memory = _bound(values.get("cpus")), _memory(values.get("memory"))
    return MachineWish(
        places=found,
        out=out,
        gpus=tuple(dict.fromkeys(gpus)),
        cpus=cpus,
        memory=memory,
        machine="" if machine == places.ANY else machine,
        usual=frozenset() if machine or cpus or memory else _usual(gpus),
        spot=values.get("spot", True),
    )


def _usual(gpus: tuple[tuple[str, int], ...]) -> frozenset[tuple[str, str, int]]:
    if not gpus:
        return frozenset({(PLAIN, "", 0)})
    known = [(name, count, shapes.GPUS[name].machines.get(count, "")) for name, count in gpus]
    return frozenset((machine, name, count) for name, count, machine in known)


def _check_place(fleet: Fleet, key: str, name: str, regions: set[str]) -> None:
    if places.is_place(name, regions):
        return
    known = [places.ANY, "us", "europe", "asia", *sorted(regions)]
    raise UsageError(
        f"fleet {fleet.name}: `{key}`: {name!r} is neither a zone, a region nor a continent",
        hint=did_you_mean(name, known, "any, us, europe, asia, a region like us-central1, or a zone of one"),
    )


def _bound(given: object) -> Bound | None:
    """`8+` or `8`."""
    text = str(given or "")
    return Bound(float(text.removesuffix("+")), text.endswith("+"), text) if text else None


def _memory(given: object) -> Bound | None:
    """`32GB+` or `32GB`, in GiB."""
    text = str(given or "")
    if not text:
        return None
    plain, more = text.removesuffix("+"), text.endswith("+")
    exact = size(int(plain)) if plain.isdigit() else size(plain)
    return Bound(exact / GIB, more, text, NEAR)
