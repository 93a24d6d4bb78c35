"""Fields of classes that tyro and Tap make options of, and OmegaConf's pairs."""

from __future__ import annotations

from pathlib import Path

from test_declarations import settled, words, write

TYRO = """
import dataclasses, tyro
from typing import Optional

@dataclasses.dataclass
class Model:
    bias: bool = True
    widths: tuple[int, ...] = (1,)

@dataclasses.dataclass
class Args:
    sure: bool
    model: Model
    capture_video: bool = False
    torch_deterministic: bool = True
    half: Optional[bool] = None
    lr: float = 0.1

args = tyro.cli(Args)
"""


def test_tyro_gets_flags_and_their_opposites(tmp_path: Path) -> None:
    write(tmp_path, train=TYRO)
    params = {"capture_video": True, "torch_deterministic": False, "lr": 0.5, "model": {"widths": [1, 2]}}
    made = words(tmp_path, {**params, "sure": True, "half": False, "model.bias": False, "unseen": False})
    assert " ".join(made) == (
        "--capture_video --no-torch_deterministic --lr 0.5 --model.widths 1 2 --sure True --half False "
        "--model.no-bias --no-unseen"
    )


def test_tyro_function_gets_its_flags(tmp_path: Path) -> None:
    write(
        tmp_path,
        train="import tyro\ndef main(amp: bool = True, sizes: list[int] = []): ...\ntyro.cli(main)\n",
    )
    assert words(tmp_path, {"amp": False, "sizes": [1, 2]}) == ["--no-amp", "--sizes", "1", "2"]


def test_tap_flag_that_is_true_by_default_makes_it_false(tmp_path: Path) -> None:
    fields = "    amp: bool = False\n    ema: bool = True\n    layers: List[int] = [1]\n    name: str = 'a'\n"
    head = "from tap import Tap\nfrom typing import List\nclass Args(Tap):\n"
    write(tmp_path, train=f"{head}{fields}args = Args().parse_args()\n")
    given = {"layers": [1, 2], "name": "b"}
    rest = ["--layers", "1", "2", "--name", "b"]
    assert words(tmp_path, {"amp": True, "ema": True, **given}) == ["--amp", *rest]
    assert words(tmp_path, {"amp": False, "ema": False, **given}) == ["--ema", *rest]


def test_omegaconf_from_the_command_line_gets_pairs(tmp_path: Path) -> None:
    write(tmp_path, train="from omegaconf import OmegaConf\nconfig = OmegaConf.from_cli()\n")
    assert settled(tmp_path, {"amp": True}).style == "equals"
    assert words(tmp_path, {"amp": True, "x": [1, 2], "model": {"d": 3}}) == [
        "amp=true",
        "x=[1,2]",
        "model.d=3",
    ]
