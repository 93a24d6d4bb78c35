"""The build of an image that is cut off: what is published is whole, what is temporary goes or is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from gce_oracle import check_seen
from hostler.backends.gce.client import GceClient
from hostler.backends.gce.images import gallery, sources
from hostler.backends.gce.images.building import Building
from hostler.backends.gce.shape import shape
from hostler.backends.images import Recipe
from hostler.emulators.gce import GceEmulator, emulator
from hostler.emulators.gcs.faults import DROPPED
from hostler.errors import CloudError
from hostler.spec.project import Fleet

FLEET = Fleet("burst", "gce", options={"zones": ["us-central1-a"], "spot": False})
STEPS = ("instances.insert", "instances.stop", "images.insert", "images.patch", "instances.delete")
SHORT = ("instances.insert", "images.patch", "instances.delete")


class Cut(BaseException):
    """As Ctrl-C: nothing but `finally` sees it."""


@pytest.fixture
def gce() -> Iterator[GceEmulator]:
    with emulator(scale=60) as made:
        yield made
        check_seen(made.requests)


def building(gce: GceEmulator, **more: object) -> tuple[Building, list[str]]:
    said: list[str] = []
    client = GceClient(gce.project, gce.url, patience=0.0)
    recipe = Recipe("mine", "echo hi\n", "setup.sh", seconds=14400)
    pause: Callable[[float], None] = more.get("pause", lambda _: time.sleep(0.05))  # type: ignore[assignment]
    return Building(client, shape(FLEET), recipe, "", pause, time.monotonic, said.append), said


def families(gce: GceEmulator) -> list[str]:
    return [str(body.get("family", "")) for body in gce._world.images.values()]


@pytest.mark.parametrize(
    "step", [pytest.param(one, marks=[pytest.mark.soak] * (one not in SHORT)) for one in STEPS]
)
def test_refused_step_leaves_nothing_but_a_whole_image(gce: GceEmulator, step: str) -> None:
    made, said = building(gce)
    gce.fail(403, step)
    if step == "instances.delete":  # all is published by then
        made.run()
        assert families(gce) == ["mine"] and "may still be there" in "\n".join(said)
        gallery.sweep_up(made.client, gallery.leavings(made.client))
    else:
        with pytest.raises(CloudError, match="the account may not do that"):
            made.run()
        assert families(gce) == []
    assert gce.left() == []


def test_answers_that_are_lost_make_nothing_twice(gce: GceEmulator) -> None:
    made, _ = building(gce)
    made.client.patience = 60.0
    for step in STEPS:
        gce.lose_answer(step)
    assert made.run() == f"global/images/{next(iter(gce._world.images))}"
    assert families(gce) == ["mine"] and gce.left() == []


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("global/images/family/nosuch", "no family named 'nosuch' in emulated"),
        ("global/images/nosuch", "no image named 'nosuch' in emulated"),
        ("projects/debian-cloud/global/images/family/debian-1", "nearest: debian-1"),
        ("projects/debian-cloud/global/images/family/debian-12", ""),
    ],
)
def test_what_an_image_begins_with_must_be_there(gce: GceEmulator, image: str, said: str) -> None:
    client = GceClient(gce.project, gce.url)
    if not said:
        return sources.check_image(client, image)
    with pytest.raises(CloudError) as error:
        sources.check_image(client, image)
    assert said in str(error.value)
    return None


def test_who_is_cut_off_while_it_waits_clears_up(gce: GceEmulator) -> None:
    looks = iter(range(3))

    def pause(_: float) -> None:
        if next(looks, None) is None:
            raise Cut

    made, _ = building(gce, pause=pause)
    made.recipe = Recipe("mine", "sleep 600\n", "setup.sh")
    with pytest.raises(Cut):
        made.run()
    assert families(gce) == [] and gce.left() == []


def test_sigterm_during_the_clean_up_lets_it_finish(
    gce: GceEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, said = building(gce)
    made.recipe = Recipe("mine", "exit 1\n", "setup.sh")
    delete, told = made.client.delete, list[str]()

    def impatient(path: str) -> bool:
        if path not in told:
            told.append(path)
            raise KeyboardInterrupt
        return delete(path)

    monkeypatch.setattr(made.client, "delete", impatient)
    with pytest.raises(CloudError, match="ended with 1"):
        made.run()
    assert told and gce.left() == [] and "Ctrl-C again leaves it" in "\n".join(said)


def test_build_without_network_names_leftovers_and_compute_engine_removes_them() -> None:
    with emulator(scale=300) as gce:
        made, said = building(gce, pause=lambda _: gce.faults.always(DROPPED))
        made.recipe = Recipe("mine", "sleep 600\n", "setup.sh", seconds=60)
        with pytest.raises(CloudError, match="does not answer"):
            made.run()
        assert f"instances/{made.name} may still be there" in "\n".join(said)
        assert "by its own timer" in "\n".join(said)
        gce.faults.clear()
        assert not any(one.over for one in gallery.leavings(made.client))
        end = time.monotonic() + 120
        while gce.left():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert gallery.leavings(made.client) == [] and families(gce) == []
