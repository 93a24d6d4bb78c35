"""Secrets planted in a fleet of VMs are in Secret Manager, or in one object of the store, nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gce_world import CloudWorld, cloud
from private_repository import private, repository
from secret_world import NAMES, Hold, Planted, script, until

SECRETS = f"command: python train.py\nsecrets: [{', '.join(NAMES)}]\nretries: 0\n"
OBJECT = "cifar/secrets/burst/000001.json"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    with cloud(tmp_path) as made:
        yield made


def prepare(world: CloudWorld, more: str, hold: Hold | None = None) -> Planted:
    world.project(workers=1, more=more)
    world.write("hostler.yaml", (world.folder / "hostler.yaml").read_text() + SECRETS)
    world.write("train.py", script(hold))
    return Planted()


def objects(world: CloudWorld) -> dict[str, bytes]:
    assert world.gce.gcs is not None
    bucket = world.gce.gcs._storage.bucket("runs")
    return {name: bytes(found.data) for name, found in bucket._objects.items()}


def holders(world: CloudWorld, planted: Planted) -> list[str]:
    """Objects, secrets and files in which one is."""
    found = [name for name, data in objects(world).items() if planted.is_in(data)]
    kept = world.gce.secret_manager.secrets
    found += [name for name, one in kept.items() if any(map(planted.is_in, one.versions))]
    return sorted([*found, *map(str, planted.files(world.folder.parent, world.gce._world.root))])


def story(world: CloudWorld) -> str:
    return world.story() + world.run("show", "one").out


@pytest.mark.parametrize("more", ["secret_manager: true", ""], ids=["manager", "object"])
def test_secret_is_in_one_place_only_while_the_fleet_exists(
    world: CloudWorld, tmp_path: Path, more: str
) -> None:
    hold = Hold(tmp_path)
    planted = prepare(world, more, hold)
    words = ("run", "--on", "burst", "--name", "one")
    shown = [world.run(*words, "--dry-run", **planted.values)]
    shown.append(world.run(*words, "-y", "--detach", **planted.values))
    assert shown[-1].code == 0, shown[-1].err + world.story()
    until(hold.waits, lambda: story(world))
    assert not planted.listed() and not planted.beside_the_run()
    places = [place for place in holders(world, planted) if not place.endswith("/output.log")]
    assert places == (sorted(world.gce.secret_manager.secrets) if more else [OBJECT])
    assert not planted.is_in(repr(world.gce.requests)) and not planted.is_in(world.story())
    hold.let_go()
    world.until_gone()
    shown += [world.run(*words) for words in (("logs", "one"), ("show", "--json", "one"), ("errors", "one"))]
    assert planted.arrived(shown[2].out), shown[2].out[-3000:]
    assert not any(planted.is_in(answer.out + answer.err) for answer in shown)
    assert holders(world, planted) == []


@pytest.mark.soak
def test_vm_that_may_not_read_secrets_reports_and_leaves_nothing(world: CloudWorld) -> None:
    planted = prepare(world, "secret_manager: true")
    world.gce.secret_manager.denied.add("secretmanager.versions.access")
    words = ("run", "--on", "burst", "--name", "one", "-y", "--detach")
    done = world.run(*words, timeout=280, **planted.values)
    assert done.code == 1 and "Permission 'secretmanager.versions.access' denied" in done.err, done.err
    assert "docs/gce.md" in done.err and not planted.is_in(done.err)
    assert world.gce.left() == [] and holders(world, planted) == []


@pytest.mark.soak
@pytest.mark.parametrize("how", ["disabled", "denied"])
def test_failing_secret_manager_is_one_line_before_any_machine(world: CloudWorld, how: str) -> None:
    planted = prepare(world, "secret_manager: true")
    if how == "disabled":
        world.gce.secret_manager.disabled = True
    world.gce.secret_manager.denied.add("secretmanager.secrets.create")
    done = world.run("run", "--on", "burst", "--name", "one", "-y", "--detach", **planted.values)
    assert done.code == 1 and ("is not enabled" if how == "disabled" else "secrets.create") in done.err
    assert "Traceback" not in done.err and world.gce.left() == [] and not planted.is_in(done.err)
    assert not any(seen.api.endswith("insert") for seen in world.gce.requests)
    launches = world.run("cost", "--json", timeout=60).json["fleets"]
    assert all(one["over"] and one["cost"] == 0 for one in launches)


@pytest.mark.soak
def test_a_new_value_is_for_machines_of_its_own(world: CloudWorld, tmp_path: Path) -> None:
    hold = Hold(tmp_path)
    first, second = prepare(world, "", hold), Planted()
    words = ("run", "--on", "burst", "-y", "--detach", "--name")
    assert world.run(*words, "one", **first.values).code == 0
    until(hold.waits, lambda: story(world))
    assert world.run(*words, "two", **second.values).code == 0
    assert {name.rsplit("-", 1)[0] for name in world.gce.names()} == {
        "hostler-cifar-burst-1",
        "hostler-cifar-burst-2",
    }
    hold.let_go()
    world.until_gone()
    assert first.arrived(world.run("logs", "one").out) and second.arrived(world.run("logs", "two").out)


@pytest.mark.soak
def test_private_code_is_fetched_with_a_token_only_git_names(world: CloudWorld, tmp_path: Path) -> None:
    code = repository(tmp_path / "code", {"train.py": "print('it is the private code')\n"})
    planted = Planted()
    token = planted.values[NAMES[0]]
    with private(code / ".git", token) as url:
        world.project(workers=1)
        more = f"command: python train.py\ngit: {url}/@main\ngit_token: {NAMES[0]}\nretries: 0\n"
        world.write("hostler.yaml", (world.folder / "hostler.yaml").read_text() + more)
        words = ("run", "--on", "burst", "--name", "one", "-y", "--detach")
        done = world.run(*words, **{NAMES[0]: token})
        assert done.code == 0, done.err
        world.until_gone()
    assert "it is the private code" in world.run("logs", "one").out, story(world)
    assert holders(world, planted) == []
