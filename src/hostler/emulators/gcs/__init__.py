"""An emulator of Google Cloud Storage for tests, with faults on demand; standard library only."""

from hostler.emulators.gcs.emulator import GcsEmulator
from hostler.emulators.gcs.faults import (
    DROPPED,
    EXPIRED,
    HALVED,
    LOST,
    Fault,
    Faults,
    busy,
    cut,
    failed,
    slow,
)
from hostler.emulators.gcs.route import Kind

__all__ = [
    "DROPPED",
    "EXPIRED",
    "HALVED",
    "LOST",
    "Fault",
    "Faults",
    "GcsEmulator",
    "Kind",
    "busy",
    "cut",
    "failed",
    "slow",
]
