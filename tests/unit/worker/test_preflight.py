from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostler.errors import MachineError
from hostler.worker import preflight
from hostler.worker.prepare import packages

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


def test_full_disk_is_refused_even_before_the_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preflight.check_disk("cache", tmp_path / "not" / "yet")
    monkeypatch.setenv("HOSTLER_DISK_MIN", "1e18")
    with pytest.raises(MachineError, match="cache"):
        preflight.check_disk("cache", tmp_path / "not" / "yet")


def test_what_is_no_python_is_refused_in_one_line() -> None:
    for exe in ("/no/such/python", "/bin/false", "/bin/true"):
        with pytest.raises(MachineError, match=exe) as caught:
            packages._ask(exe)
        assert "\n" not in str(caught.value)
