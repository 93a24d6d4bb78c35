"""`hostler prices update` against an emulated Google: its table is used from then on, and its age is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import servers
from cli_world import World
from hostler.emulators.gce import GceEmulator, emulator

FLEET = "{{backend: gce, project: {}, zones: [us-east1-b], machine: n2-standard-8, workers: 2, spot: false}}"


@pytest.fixture
def gce() -> Iterator[GceEmulator]:
    with emulator(buckets=["runs"], strict=True) as made:
        yield made


@pytest.fixture
def world(tmp_path: Path, gce: GceEmulator) -> World:
    made = World(tmp_path)
    made.env = {**made.env, **gce.environ(), "XDG_STATE_HOME": str(tmp_path / "state")}
    fleet = FLEET.format(gce.project)
    made.write("hostler.yaml", f"name: c\nstore: gs://runs/c\nfleets:\n  burst: {fleet}\n")
    made.write("grid.yaml", "name: grid\ncommand: python train.py\nparameters: {lr: [1]}\n")
    return made


def planned(world: World) -> str:
    done = world.run("plan", "--on", "burst", "grid.yaml", timeout=60)
    assert done.code == 0, done.err
    return done.out


def hour(world: World) -> float:
    """Price of a worker, as it is planned."""
    told = world.run("plan", "--on", "burst", "--json", "grid.yaml", timeout=60).json
    return float(told["price"]["per_worker_hour"])


def table_of(world: World) -> Path:
    return Path(world.env["XDG_STATE_HOME"]) / "hostler" / "prices" / "gce_prices.txt"


def test_updated_table_is_used_in_the_place_of_hostlers(world: World, gce: GceEmulator) -> None:
    assert "comes with hostler" in world.run("prices").out
    before = hour(world)
    gce.billing.factors["us-east1"] = 10.0
    done = world.run("prices", "update", timeout=60)
    assert done.code == 0 and str(table_of(world)) in done.err, done.err
    assert date.today().isoformat() in done.out and "days old" in done.out
    disk = 0.0068  # of an hour
    assert 10 * (before - disk) == pytest.approx(hour(world) - disk, rel=0.01)
    check_catalogue(gce)
    gce.billing.disabled = True
    told = world.run("prices", "update", timeout=60)
    assert told.code == 1 and "gcloud services enable cloudbilling" in told.err, told.err
    assert hour(world) > 5 * before  # the table before stays


def test_table_older_than_ninety_days_is_said(world: World) -> None:
    assert world.run("prices", "update", timeout=60).code == 0
    text, today = table_of(world).read_text(), date.today()
    for days, said in ((90, False), (91, True)):
        old = text.replace(f"date {today}", f"date {today - timedelta(days)}")
        table_of(world).write_text(old)
        world.env["HOSTLER_PRICES"] = str(table_of(world))
        words = f"the price table is {days} days old: hostler prices update"
        assert (words in planned(world)) is said
        assert (words in world.run("prices").out) is said
        [one] = world.run("prices", "--json").json
        assert (one["days"], one["old"]) == (days, said)


def check_catalogue(gce: GceEmulator) -> None:
    """Requests and answers hold to Google's own description of the catalogue."""
    servers.library("googleapiclient")
    folder = files("googleapiclient").joinpath("discovery_cache", "documents")
    document = json.loads(folder.joinpath("cloudbilling.v1.json").read_text(encoding="utf-8"))
    method = document["resources"]["services"]["resources"]["skus"]["methods"]["list"]
    assert gce.billing.requests
    for request, status, body in gce.billing.requests:
        assert request.path.startswith("/v1/services/") and set(request.query) <= set(method["parameters"])
        if status == 200:
            _check(document["schemas"], method["response"]["$ref"], body)


def _check(schemas: dict[str, Any], name: str, value: dict[str, Any]) -> None:
    known = schemas[name]["properties"]
    for key, found in value.items():
        assert key in known, f"{name} has no {key}"
        rule = known[key]
        inner = rule.get("$ref") or rule.get("items", {}).get("$ref")
        for one in found if isinstance(found, list) else [found]:
            if inner:
                _check(schemas, inner, one)
