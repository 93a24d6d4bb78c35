"""torchvision's own JPEG decoder, where it was built for CUDA and there is none.

Its compiled part asks for two libraries of torch's CUDA build. Stand-ins with their names, whose functions
end the process, let it be loaded beside a CPU build: the decoder of the CPU is the real one, that of a GPU is
not there. Where the part loads by itself nothing is done.
"""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from functools import cache
from pathlib import Path

import torch

import servers

MISSING = ("libc10_cuda.so", "libtorch_cuda.so")


@cache
def load(folder: Path) -> None:
    """`folder`: for the stand-ins; once in a process."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        servers.missing("torchvision is not installed")
        return
    part = Path(found.origin).parent / "image.so"
    try:
        torch.ops.load_library(str(part))
    except OSError as error:
        if not any(name in f"{error} {error.__cause__}" for name in MISSING):
            servers.missing(f"torchvision's decoder cannot be loaded: {error.__cause__ or error}")
        _stand_in(part, folder)
        torch.ops.load_library(str(part))
    import torchvision.io.image as image

    image._has_image_ops = lambda: True  # it may have been imported before


def _stand_in(part: Path, folder: Path) -> None:
    said = subprocess.run(
        ["nm", "-D", "--undefined-only", str(part)], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in said.stdout.splitlines()}
    wanted = sorted(name for name in names if name.startswith("_Z") and "4cuda" in name)
    source = folder / "cuda.c"
    source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in wanted))
    for name in MISSING:
        words = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(folder / name), str(source)]
        subprocess.run(words, check=True)
        ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
