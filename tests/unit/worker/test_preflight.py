from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostler.errors import MachineError
from hostler.spec.job import Resources
from hostler.worker import packages, preflight
from hostler.worker.nvml import GPU, Snapshot

INSTALLED = {"torch": "2.1.0+cu121", "pyyaml": "6.0.1", "scikit_learn": "1.4", "numpy": "1.26.4"}


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.1.0",
        "torch == 2.1.0+cu121  # for the H200",
        "torch[opt]==2.1",
        "torch==2.1.*",
        "PyYAML==6.0.1",
        "scikit-learn==1.4.0",
        "numpy==1.26.4 --hash=sha256:aa",
        "numpy===1.26.4",
        "numpy>=99",
        "absent==1; python_version < '3'",
        "# numpy==0.1",
        "-r other.txt",
        "",
    ],
)
def test_these_lines_are_met_or_no_pins(line: str) -> None:
    assert preflight.unmet([line], INSTALLED) == []


@pytest.mark.parametrize(
    "line",
    ["torch==2.1.1", "torch==2.1.0+cpu", "absent==1.0", "numpy==1.2.*", "pyyaml==6.0.10", "numpy==1.26.4.1"],
)
def test_these_pins_are_not_met(line: str) -> None:
    assert len(preflight.unmet([line], INSTALLED)) == 1


def test_a_wrong_pin_is_refused_with_what_is_there_instead() -> None:
    with pytest.raises(MachineError, match=r"pytest==0\.1 \(has \d"):
        preflight.check_pins(sys.executable, ["pytest==0.1"])


def test_a_full_disk_is_refused_also_where_the_folder_is_not_made_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preflight.check_disk("cache", tmp_path / "not" / "yet")
    monkeypatch.setenv("HOSTLER_DISK_MIN", "1e18")
    with pytest.raises(MachineError, match="cache"):
        preflight.check_disk("cache", tmp_path / "not" / "yet")


def test_more_memory_than_the_machine_has_is_refused() -> None:
    preflight.check_memory(Resources(memory=1))
    with pytest.raises(MachineError, match="memory"):
        preflight.check_memory(Resources(memory=10**18))


def test_a_gpu_without_a_driver_is_refused_with_the_reason() -> None:
    with pytest.raises(MachineError, match=r"no NVIDIA driver.*nvidia-smi"):
        preflight.check_gpu(Resources(gpus=0.5), Snapshot(problem="no NVIDIA driver (x not found)"))
    preflight.check({}, Resources(gpus=1), Snapshot(gpus=(GPU(0, "GPU-1"),)))
    preflight.check({}, Resources(), Snapshot(problem="no driver"))


def test_what_is_no_python_is_refused_in_one_line() -> None:
    for exe in ("/no/such/python", "/bin/false", "/bin/true"):
        with pytest.raises(MachineError, match=exe) as caught:
            packages._ask(exe)
        assert "\n" not in str(caught.value)
