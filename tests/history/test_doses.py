"""The full doses of `make reliability` that no other test has; HOSTLER_DOSE=0.002 takes a part of each.

HOSTLER_DOSE=0.002 .venv/bin/python -m pytest tests/history/test_doses.py -m soak -k folder
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_exact_torch import killed_it_is_the_same
from test_killer import rage

import servers

PART = float(os.environ.get("HOSTLER_DOSE", "1"))
SEED = int(os.environ.get("HOSTLER_SEED", "11"))
STORES = ("folder", "seaweed", "gcs", "azurite")
pytestmark = pytest.mark.soak


def part_of(whole: float, least: float) -> int:
    """A part of a dose, as large as it is asked for."""
    return round(max(least, PART * whole))


@pytest.mark.timeout(14400)
@pytest.mark.parametrize("store", STORES)
def test_ten_thousand_runs_survive_ten_minutes_of_kills(
    tmp_path: Path, request: pytest.FixtureRequest, store: str
) -> None:
    if store == "gcs":
        request.getfixturevalue("gcs")
        url = f"gs://{servers.BUCKET}/dose"
    else:
        fixture = f"{store}_store_url"
        url = str(tmp_path / "store") if store == "folder" else request.getfixturevalue(fixture)
    workers, seconds = part_of(16, 3), part_of(600, 6)
    lease = 3.0 if store == "folder" else 8.0
    rage(url, tmp_path, runs=part_of(10_000, 12), workers=workers, seconds=seconds, seed=SEED, lease=lease)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(5))
def test_torch_training_by_hand_survives_twenty_kills_a_seed(tmp_path: Path, seed: int) -> None:
    """Five seeds are a hundred kills."""
    killed_it_is_the_same(tmp_path, "mlp", part_of(20, 2), seed=SEED + seed)
