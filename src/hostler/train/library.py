"""Libraries that only some data sets and models need: imported when one of those is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hostler.errors import MachineError


def need(module: str, package: str, what: str) -> Any:
    """The module; where it is not installed, the package that brings it. `what` asked for it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] == module.partition(".")[0]:
            raise MachineError(f"{what} needs {package}", hint=f"pip install {package}") from None
        raise MachineError(f"{what}: {module} cannot be imported: {error}") from None
    except RuntimeError as error:  # torchvision that was built for another torch
        first = str(error).partition("\n")[0]
        raise MachineError(
            f"{what}: {module} cannot be imported: {first}", hint=f"a {package} that fits this torch"
        ) from None
