"""Lets torchvision be imported beside a torch that it was not built for, as the CPU build of the tests is.

torchvision describes two operators of its compiled part, and cannot be imported where that part cannot be
loaded. This defines them, empty, the moment torchvision is asked for, and only where the part does not load:
pictures, data sets and models need neither. As a program it makes the interpreter that runs it do so always,
for whatever a test starts. Each of its processes pays for what is imported here, so that is next to nothing.
"""

from __future__ import annotations

import sys

OPERATORS = ("nms", "qnms")
KEPT = []  # a library's operators go with it


class BeforeTorchvision:
    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name == "torchvision":
            sys.meta_path.remove(self)
            define_where_missing()
        return


def define_where_missing() -> None:
    import importlib.util
    from pathlib import Path

    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return
    import torch

    for part in Path(spec.origin).parent.glob("_C*.so"):
        try:
            torch.ops.load_library(str(part))
            return
        except OSError:
            continue
    library = torch.library.Library("torchvision", "DEF")
    for name in OPERATORS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    KEPT.append(library)


def watch() -> None:
    if not any(type(one).__name__ == BeforeTorchvision.__name__ for one in sys.meta_path):
        sys.meta_path.insert(0, BeforeTorchvision())


if __name__ == "__main__":
    import shutil
    import sysconfig
    from pathlib import Path

    place = Path(sysconfig.get_path("purelib"))
    (place / "torchvision_here.py").unlink(missing_ok=True)
    shutil.copy(__file__, place / "torchvision_here.py")
    (place / "torchvision_here.pth").write_text("import torchvision_here; torchvision_here.watch()\n")
