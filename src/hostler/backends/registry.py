"""Registry of the platforms: a line for each names its folder. Every part of a folder is imported on use.

| file of a folder | holds | without it |
|---|---|---|
| `backend.py` | `open_backend(fleet)`: its `Backend` | |
| `keys.py` | `KEYS`: the keys of its fleets in hostler.yaml | |
| `host.py` | `this_host()`: the `Host` of a worker on one of its machines | an ordinary machine, as `local` |
| `capacity.py` | `split`, `size`, `runs_each`, as `hostler simulate` asks; each may be left out | unknown |
| `prices.py` | `price`, `with_machines`: by a table; `standing()`: which one | `price:` of the fleet |
| `catalogue.py` | `update()`: writes the newest prices where `prices.py` finds them | no newer ones |
| `doctor.py` | `checks(fleets, store)`, `EXTRA`, `CREDENTIALS`; each may be left out | nothing to say |
| `discovery.py` | `discover()`: a `Discovery` if this machine can use it, for `hostler init` | not offered |
| `fleet.yaml` | an example of its fleets, for `hostler init --fleet` | |
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from hostler.errors import UsageError

if TYPE_CHECKING:  # a worker's parent loads no more than its host
    from hostler.backends.base import Backend, Host, ThisMachine
    from hostler.spec.project import Fleet

HERE = "local"  # the platform that is this machine
BACKENDS = {
    "local": "hostler.backends.local",
    "ssh": "hostler.backends.ssh",
    "slurm": "hostler.backends.slurm",
    "sge": "hostler.backends.sge",
    "pbs": "hostler.backends.pbs",
    "lsf": "hostler.backends.lsf",
    "gce": "hostler.backends.gce",
    "kubernetes": "hostler.backends.kubernetes",
}
SECRET_PLACES = {"manager": "hostler.backends.gce.manager"}  # beside files and the store: `--secrets KIND:…`


def backend_of(fleet: Fleet) -> Backend:
    """The backend of a fleet, which may be another one for other keys of it."""
    return _open(fleet.backend, fleet)


def backend(name: str) -> Backend:
    return _open(name, None)


def this_machine() -> ThisMachine:
    made: ThisMachine = import_module(f"{_folder(HERE)}.backend").open_backend()
    return made


def host(name: str) -> Host:
    """The machine that a worker of this platform runs on."""
    made: Host = (part(name, "host") or import_module("hostler.backends.local.host")).this_host()
    return made


def part(name: str, file: str) -> ModuleType | None:
    """A module of a platform's folder; None where it has none of that name."""
    module = f"{_folder(name)}.{file}"
    return import_module(module) if find_spec(module) else None


def data_file(name: str, file: str) -> str:
    """Path of a file that is not a module in a platform's folder."""
    folder = import_module(_folder(name)).__path__[0]
    return f"{folder}/{file}"


def secret_place(where: str) -> ModuleType | None:
    """The module that reads (`read`) and removes (`forget`) the secrets of such a place; None for others."""
    kind = where.partition(":")[0]
    return import_module(SECRET_PLACES[kind]) if kind in SECRET_PLACES else None


def _open(name: str, fleet: Fleet | None) -> Backend:
    made: Backend = import_module(f"{_folder(name)}.backend").open_backend(fleet)
    return made


def _folder(name: str) -> str:
    if name in BACKENDS:
        return BACKENDS[name]
    import difflib

    near = difflib.get_close_matches(name, BACKENDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(BACKENDS)}"
    raise UsageError(f"no backend named {name!r}", hint=hint)
