"""Every platform's host answers what a worker asks of it, with the standard library alone."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import hostler
from hostler.backends import registry
from hostler.backends.base import Host
from hostler.errors import MachineError, UsageError

ASKED = [name for name, member in vars(Host).items() if inspect.isfunction(member) and name[0] != "_"]


@pytest.mark.parametrize("name", registry.BACKENDS)
def test_every_host_has_the_methods_of_the_seam(name: str) -> None:
    host, missing = registry.host(name), []
    for method in ASKED:
        seam, own = inspect.signature(getattr(Host, method)), inspect.signature(getattr(type(host), method))
        if list(own.parameters)[: len(seam.parameters)] != list(seam.parameters):
            missing.append(method)
    assert "place" in ASKED and not missing
    assert isinstance(host.name, str) and isinstance(host.comes_with_launch, bool)


@pytest.mark.parametrize("name", registry.BACKENDS)
def test_hosts_load_nothing_but_the_standard_library(name: str) -> None:
    """Isolated from site-packages, as on a machine that has nothing but Python."""
    source = Path(hostler.__file__).parent.parent
    script = f"import sys; sys.path.insert(0, {str(source)!r}); from hostler.backends import registry; "
    script += f"print(registry.host({name!r}).exit_code)"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_machine_that_stays_limits_shows_and_queues_nothing() -> None:
    host, settled = registry.host("ssh"), list[str]()
    host.show("run")
    host.report("working")
    host.leave()
    host.watch(lambda: settled.append("noticed"))
    host.tear_down(lambda: settled.append("settled"))
    assert settled == ["settled"] and host.seconds_left() is None and host.give_back() is None
    assert host.place() == ("", 0) and host.born() == ("", 0.0)
    assert host.exit_code(MachineError("full")) == MachineError.exit_code
    with pytest.raises(UsageError, match="--nodes 2"):
        host.on_nodes(["worker"], 2)


def test_an_unknown_host_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="slrum") as error:
        registry.host("slrum")
    assert "slurm" in error.value.hint
