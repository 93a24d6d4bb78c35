"""An image is built on an emulated Google, and a fleet uses it; whatever goes wrong, no VM is left."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gce_api import properties
from gce_world import CloudWorld, cloud, eventually
from hostler.backends.gce.client import GceClient

SETUP = "#!/bin/bash\nset -e\necho putting it there\nmkdir -p ~/tools\necho baked > ~/tools/word.txt\n"
READS = """
import json, os
from pathlib import Path

found = (Path(os.environ["HOME"]) / "tools" / "word.txt").read_text().strip()
print(json.dumps({"step": 1, "loss": 1.0}), flush=True)
Path(os.environ["HOSTLER_OUTPUT_DIR"], "weights.txt").write_text(found)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    with cloud(tmp_path, scale=30) as made:
        made.project(workers=1, zones=["us-central1-a", "us-central1-b"], more="family: mine")
        made.env |= {"HOSTLER_REPORT": "300", "HOSTLER_MACHINES": "300", "HOSTLER_LEASE": "60"}
        made.write("setup.sh", SETUP)
        made.write("train.py", READS)
        yield made


def built(
    world: CloudWorld, *words: str, script: str = "setup.sh", timeout: float = 120
) -> tuple[int, str, str]:
    done = world.run("image", "build", "--family", "mine", "--script", script, "-y", *words, timeout=timeout)
    return done.code, done.out.strip(), done.err


def families(world: CloudWorld) -> dict[str, str]:
    """Images that are there, and the family of each."""
    return {name: str(body.get("family", "")) for name, body in world.gce._world.images.items()}


def test_built_image_serves_a_fleet_and_nothing_else_is_left(world: CloudWorld) -> None:
    missing = world.run("run", "--on", "burst", "-y", "train.py", timeout=120)
    assert missing.code == 1 and "no family named 'mine' in emulated" in missing.err, missing.err
    world.gce.stockout("us-central1-a")
    code, name, said = built(world)
    assert code == 0, said
    assert families(world) == {name: "mine"} and world.gce.left() == []
    assert "| putting it there" in said and "0.1" in said and "a month" in said
    listed = world.run("image", "list")
    assert name in listed.out and "*" in listed.out, listed.out
    done = world.run("run", "--on", "burst", "-y", "train.py", timeout=180)
    assert done.code == 0, done.err + world.story()
    world.until_gone()
    folder = world.folder / "pulled"
    pulled = world.run("pull", "train", "--outputs", "--to", str(folder), "-y", timeout=120)
    assert pulled.code == 0, pulled.err
    assert [path.read_text() for path in folder.rglob("weights.txt")] == ["baked"]


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        ("echo no such package; exit 3", (), "setup.sh ended with 3"),
        ("sleep 600", ("--timeout", "2s"), "setup.sh had not ended when its time was over"),
        pytest.param(
            "poweroff; sleep 600", (), "the VM went off before it was ready", marks=pytest.mark.soak
        ),
    ],
)
def test_a_script_that_does_not_end_well_publishes_nothing(
    world: CloudWorld, script: str, words: tuple[str, ...], said: str
) -> None:
    world.write("setup.sh", f"{script}\n")
    code, name, err = built(world, *words)
    assert code == 1 and name == "" and said in err, err
    assert "nothing is published" in err
    assert families(world) == {} and world.gce.left() == []


def test_half_made_or_abandoned_image_is_in_no_family(world: CloudWorld) -> None:
    world.gce.fail(403, "images.patch")
    code, _, err = built(world)
    assert code == 1 and "the account may not do that" in err, err
    assert families(world) == {} and world.gce.left() == []
    world.write("setup.sh", "echo begins\nsleep 600\n")
    process = world.start("image", "build", "--family", "mine", "--script", "setup.sh", "-y")
    eventually(lambda: any("begins" in world.gce.serial(name) for name in world.gce.names()))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "nothing is published" in err, err
    assert families(world) == {} and world.gce.left() == []


@pytest.mark.soak
def test_sigterm_while_the_image_is_being_made_clears_up(world: CloudWorld) -> None:
    world.gce.delay(120, "images.insert")
    process = world.start("image", "build", "--family", "mine", "--script", "setup.sh", "-y")
    eventually(lambda: families(world) != {})
    process.terminate()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "nothing is published" in err, err
    assert families(world) == {} and world.gce.left() == []


@pytest.mark.soak
def test_what_google_refuses_is_one_line_and_nothing_is_left(world: CloudWorld) -> None:
    world.gce.fail(403, "instances.insert")
    code, _, err = built(world)
    assert code == 1 and "the account may not do that" in err, err
    world.gce.quota("CPUS", 1, "us-central1")
    code, _, err = built(world)
    assert (
        code == 75 and "no VM is available to build mine" in err and "a quota of the region is used up" in err
    ), err
    for words, said in (
        (("--from", "nosuch"), "no family named 'nosuch' in emulated"),
        (("--from", "debian-1", "--from-project", "debian-cloud"), "nearest: debian-1"),
        (("--zone", "us-central1-z"), "no zone named 'us-central1-z'"),
    ):
        code, _, err = built(world, *words)
        assert code == 1 and said in err and "an hour" not in err, err
    done = world.run("image", "build", "--family", "mine", "--from-vm", "dev", "-y", timeout=120)
    assert done.code == 1 and "no VM named 'dev' in emulated" in done.err, done.err
    named = world.run("image", "build", "--family", "Mi ne", "--script", "setup.sh", "-y", timeout=120)
    assert named.code == 2 and len(named.err.strip().splitlines()) == 2, named.err
    assert families(world) == {} and world.gce.left() == []


def test_whose_laptop_dies_leaves_it_to_compute_engine(tmp_path: Path) -> None:
    with cloud(tmp_path, scale=240) as world:
        world.project(workers=1, zones=["us-central1-a"])
        world.write("setup.sh", "echo begins\nsleep 600\n")
        words = ("image", "build", "--family", "mine", "--script", "setup.sh", "-y", "--timeout", "1s")
        process = world.start(*words)
        eventually(lambda: any("begins" in world.gce.serial(name) for name in world.gce.names()))
        process.kill()
        process.communicate()
        world.until_gone(120)
        assert families(world) == {}


def test_vm_set_up_by_hand_becomes_an_image_without_secrets(
    world: CloudWorld,
) -> None:
    by_hand(world)
    done = world.run("image", "build", "--family", "mine", "--from-vm", "dev", "-y", timeout=120)
    assert done.code == 0, done.err
    name = done.out.strip()
    assert families(world) == {name: "mine"} and world.gce.names() == ["dev"]
    home = world.gce._world.root / ".images" / name / "home"
    there = sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    assert there == ["code/train.py", "data.json", "tools/word.txt"]
    [dev] = world.gce.machines()
    assert (world.gce._world.root / f"dev-{dev.body['id']}" / "home" / ".env").exists()
    assert "dev runs: data not yet written" in done.err and "removed" in done.err
    assert len(world.gce.left()) == 2


def by_hand(world: CloudWorld) -> None:
    """A VM `dev`, in the zone where none is left for others, with things of all kinds in its home."""
    files = {
        ".env": "KEY=1",
        ".bash_history": "ls",
        ".ssh/id_ed25519": "x",
        "code/.git/config": "x",
        "code/train.py": "x",
        "code/key.json": '{"type": "service_account", "private_key": "x"}',
        "data.json": "{}",
        "tools/word.txt": "baked",
    }
    lines = [
        f"mkdir -p \"$(dirname ~/{name})\"; printf '%s' '{text}' > ~/{name}" for name, text in files.items()
    ]
    script = "\n".join([*lines, "echo all is there", "while true; do sleep 0.2; done"])
    token = world.gce._world.tokens.issue()
    client = GceClient(world.gce.project, world.gce.url, lambda: token)
    made = {**properties(script, spot=False), "name": "dev"}
    made["machineType"] = "zones/us-central1-b/machineTypes/e2-small"
    client.insert("zones/us-central1-b/instances", made)
    eventually(lambda: "all is there" in world.gce.serial("dev"))


def test_leftovers_of_a_build_are_removed_after_their_time(world: CloudWorld) -> None:
    world.env["HOSTLER_IMAGING"] = "-1819"
    world.gce.delay(120, "images.insert")
    words = ("image", "build", "--family", "mine", "--script", "setup.sh", "-y", "--timeout", "20s")
    process = world.start(*words)
    eventually(lambda: families(world) != {})
    process.kill()
    process.communicate()
    assert list(families(world).values()) == [""]
    listed = world.run("image", "list", timeout=120)
    assert "no images exist" in listed.err and "half-made image" in listed.err, listed.err
    eventually(lambda: "left behind by a build" in world.run("doctor", timeout=120).out)
    gone = world.run("doctor", "--remove", "-y", timeout=120)
    assert "0 still there" in gone.err, gone.err
    assert families(world) == {} and world.gce.left() == []


def test_old_images_of_a_family_go_and_the_newest_stay(world: CloudWorld) -> None:
    names = ["mine-1", "mine-2"]
    token = world.gce._world.tokens.issue()
    client = GceClient(world.gce.project, world.gce.url, lambda: token)
    for name in names:
        body = {"name": name, "family": "mine", "labels": {"hostler-family": "mine"}}
        client.insert("global/images", body)
    refused = world.run("image", "delete", "mine", timeout=60)
    assert refused.code == 2 and "cannot ask" in refused.err and len(families(world)) == 2
    done = world.run("image", "delete", "mine", "-y", timeout=60)
    assert done.code == 0 and "1 image of mine is gone, 1 kept" in done.err, done.err
    assert families(world) == {names[1]: "mine"}
    again = world.run("image", "delete", "mine", timeout=60)
    assert again.code == 0 and "nothing of mine is older" in again.err
    last = world.run("image", "delete", "mine", "--keep", "0", "-y", timeout=60)
    assert "no image of mine would be left, and burst needs one" in last.err and families(world) == {}
    none = world.run("image", "delete", "mine", "-y", timeout=60)
    assert none.code == 1 and "no images of mine exist" in none.err


@pytest.mark.soak
def test_packages_of_a_project_are_where_its_workers_look(world: CloudWorld) -> None:
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", f"{text}python: {{requirements: needs.txt}}\n")
    world.write("needs.txt", "--no-index\n-r more.txt\n")
    world.write("more.txt", "# nothing\n")
    done = world.run("image", "build", "--family", "mine", "--requirements", "--script", "setup.sh", "-y")
    assert done.code == 0, done.err
    [place] = (world.gce._world.root / ".images" / done.out.strip() / "home/.cache/hostler/envs").glob(
        "*.image"
    )
    assert (place / "bin" / "python").exists()
    world.write("train.py", "import json, sys\nprint(json.dumps({'step': 1, 'loss': 1.0}), sys.prefix)\n")
    ran = world.run("run", "--on", "burst", "-y", "train.py", timeout=240)
    assert ran.code == 0 and f"envs/{place.name}" in ran.out, ran.out + ran.err
    assert "installing" not in ran.err
