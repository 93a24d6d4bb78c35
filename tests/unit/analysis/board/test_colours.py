"""Colours of curves: any two of the twenty differ, for the colour-blind as well."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import hostler.analysis.board

PAGE = Path(hostler.analysis.board.__file__).parent / "page"
# Machado, Oliveira and Fernandes (2009): linear RGB as it is seen without one kind of cone.
SIGHT = {
    "all colours": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)


def palette(name: str) -> list[str]:
    source = (PAGE / "plots" / "colours.js").read_text()
    return re.findall(r"#[0-9a-f]{6}", source.split(f"export const {name}")[1].split("]")[0])


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    return np.asarray(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4))


def oklab(light: np.ndarray) -> np.ndarray:
    return np.asarray(LAB @ np.cbrt(LMS @ np.clip(light, 0, 1)))


def contrast(a: str, b: str) -> float:
    one, two = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (two + 0.05) / (one + 0.05)


@pytest.mark.parametrize("name", ["LIGHT", "DARK"])
@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_of_twenty_colours_are_told_apart(name: str, sight: str) -> None:
    seen = [oklab(np.array(SIGHT[sight]) @ linear(colour)) for colour in palette(name)]
    assert len(seen) == 20
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 0.06


@pytest.mark.parametrize(("name", "card"), [("LIGHT", "#ffffff"), ("DARK", "#1b2023")])
def test_each_colour_stands_out_from_its_card(name: str, card: str) -> None:
    assert all(contrast(colour, card) >= 3 for colour in palette(name))
