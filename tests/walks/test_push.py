"""`hostler push`: to a stand-in of the hub by the real client, to a bucket's store and a folder."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from hostler.store import registry
from hub_stand_in import TOKEN, Hub

servers.library("huggingface_hub")

SCRIPT = """import json, os, pathlib, struct
place = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
head = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
(place / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + struct.pack("<2f", 1, 2))
for step in range(5):
    print(json.dumps({"step": step, "acc": step / 10}))
pathlib.Path("notes.txt").write_text("done")
"""
PICKLED = """import os, torch
class Evil:
    def __reduce__(self):
        return (os.mkdir, (os.environ["MARK"],))
found = {"model": {"w": torch.tensor([1.0, 2.0])}, "epoch": 3, "moments": [torch.zeros(2)]}
place = os.environ["HOSTLER_CHECKPOINT_DIR"]
torch.save(found, f"{place}/last.pt")
if "--evil" in os.sys.argv:
    torch.save(Evil(), f"{place}/evil.pt")
"""


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    found = Hub()
    yield found
    found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("push") / "work"
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    done = hostler(work, "run", "--name", "fast", "train.py", "--lr", "0.1|x", "--set", f"{Path.home()}/set")
    assert done.returncode == 0, done.stderr
    return work


def hostler(work: Path, *words: str, typed: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return child(work, "-m", "hostler", *words, typed=typed, **more)


def child(work: Path, *words: str, typed: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    home = work.parent / "home"
    home.mkdir(exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HOSTLER_", "HUGGING"))}
    env |= {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "HOSTLER_CACHE": str(work.parent / "cache")}
    env |= {"HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **more}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=work, env=env, input=typed, capture_output=True, text=True, timeout=240
    )


def test_push_to_the_hub_asks_and_brings_card_and_weights(hub: Hub, folder: Path) -> None:
    there = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
    refused = hostler(folder, "push", "fast", "hf://me/model", typed="n\n", **there)
    assert refused.returncode == 1 and "nothing was pushed" in refused.stderr
    assert "the hub, me/model, private" in refused.stderr and "model.safetensors" in refused.stderr
    assert hub.repos == {} and not [line for line in hub.asked if line.startswith("POST")]

    done = hostler(folder, "push", "fast@last", "hf://me/model", "--outputs", "-y", **there)
    assert done.returncode == 0, done.stderr
    files = hub.repos["me/model"]
    assert hub.private["me/model"] and "at step" in hub.messages[0]
    assert {"README.md", "run.json", "curves.csv", "curves/acc.svg", "outputs/notes.txt"} <= set(files)
    card = files["README.md"].decode()
    assert "| lr | 0.1\\|x |" in card and "| acc | 0.4 |" in card and "![acc](curves/acc.svg)" in card
    assert "## Provenance" in card and str(folder) not in card
    for text in (card, files["run.json"].decode()):
        assert "~/set" in text and f"{Path.home()}/" not in text
    assert TOKEN not in done.stdout + done.stderr + refused.stderr

    ask = "from huggingface_hub import hf_hub_download as get; print(get('me/model', 'model.safetensors'))"
    got = child(folder, "-c", ask, HF_HUB_OFFLINE="0", **there)
    from safetensors.numpy import load_file

    assert load_file(got.stdout.strip())["w"].tolist() == [1.0, 2.0], got.stderr

    again = hostler(folder, "push", "fast", "hf://me/model", typed="n\n", **there)
    assert (
        "It replaces README.md, curves.csv, curves/acc.svg, model.safetensors and run.json." in again.stderr
    )


def test_run_begins_from_a_model_of_the_hub(hub: Hub, folder: Path) -> None:
    hub.repos["me/base"] = {"config.json": b"{}", "w/part.bin": b"12345"}
    hub.private["me/base"] = True
    look = "import os, pathlib\nd = pathlib.Path(os.environ['HOSTLER_DATA']) / 'init'\n"
    look += "print('init', sorted(os.listdir(d)) if d.is_dir() else d.read_text())\n"
    (folder / "look.py").write_text(look)
    there = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}
    whole = hostler(folder, "run", "--init-from", "hf://me/base", "look.py", **there)
    assert "init ['config.json', 'w']" in whole.stdout, whole.stderr + whole.stdout
    part = hostler(
        folder, "run", "--init-from", "hf://me/base/w/part.bin", "--name", "part", "look.py", **there
    )
    assert "init 12345" in part.stdout, part.stderr + part.stdout
    gone = hostler(folder, "run", "--init-from", "hf://me/nope", "--name", "gone", "look.py", **there)
    assert gone.returncode and "hf://me/nope" in gone.stderr and TOKEN not in gone.stdout + gone.stderr


def test_data_of_the_hub_reach_a_run(hub: Hub, tmp_path: Path) -> None:
    hub.repos["datasets/me/set"] = {"train/a.txt": b"one", "train/deep/b.txt": b"two", "test/c.txt": b""}
    work = tmp_path / "work"
    work.mkdir()
    (work / "hostler.yaml").write_text("data: {words: hf://datasets/me/set/train/}\n")
    look = "import os, pathlib\nd = pathlib.Path(os.environ['HOSTLER_DATA']) / 'words'\n"
    look += "print(*sorted(f'{p.relative_to(d)}={p.read_text()}' for p in d.rglob('*.txt')))\n"
    (work / "look.py").write_text(look)
    done = hostler(work, "run", "look.py", HF_ENDPOINT=hub.url, HF_TOKEN=TOKEN)
    assert "a.txt=one deep/b.txt=two\n" in done.stdout, done.stderr + done.stdout


def test_hub_without_a_token_is_one_line(hub: Hub, folder: Path) -> None:
    done = hostler(folder, "push", "fast", "hf://me/other", "-y", HF_ENDPOINT=hub.url)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["hostler: no token for the hub", "  → hf auth login, or HF_TOKEN"]
    wrong = hostler(
        folder, "push", "fast", "hf://me/other", "-y", HF_ENDPOINT=hub.url, HF_TOKEN="hf_secretWRONG"
    )
    assert wrong.returncode and "Traceback" not in wrong.stderr and "the hub refused me/other" in wrong.stderr
    assert "hf_secretWRONG" not in wrong.stderr and "me/other" not in hub.repos
    away = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_TOKEN": TOKEN}
    silent = hostler(folder, "push", "fast", "hf://me/other", "-y", **away)
    assert silent.returncode and "Traceback" not in silent.stderr
    assert silent.stderr.splitlines()[-1].startswith("hostler: the hub did not answer: ")


def test_push_to_a_folder_and_bad_input(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "models" / "fast"
    done = hostler(folder, "push", "fast", str(target), "-y", "--json")
    assert done.returncode == 0, done.stderr
    assert (target / "README.md").is_file() and (target / "model.safetensors").stat().st_size > 8
    for words, said in {
        ("fast", ""): "no target is named",
        ("fast", "."): ". is the folder of a project: it holds .hostler",
        ("fast", "hf://model"): "hf://model is not a model of the hub",
        ("nope", str(target)): "no run or sweep named 'nope'",
        ("fast@77", str(target)): "77",
        ("fast", str(target / "README.md")): "is a file",
    }.items():
        wrong = hostler(folder, "push", *words, "-y")
        assert wrong.returncode and said in wrong.stderr and "Traceback" not in wrong.stderr, wrong.stderr


@pytest.mark.parametrize("kind", ["seaweed_store_url", "gcs"])
def test_push_to_a_bucket_brings_every_file(kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(kind)
    url = server if isinstance(server, str) else f"gs://{servers.BUCKET}/models"
    done = hostler(folder, "push", "fast", url, "-y", "--json")
    assert done.returncode == 0, done.stderr
    bucket, told = registry.open_at(url), json.loads(done.stdout)
    assert {entry.key for entry in bucket.list("")} == set(told["files"]) > {"README.md", "run.json"}
    assert bucket.get("model.safetensors").data.endswith(struct.pack("<2f", 1, 2)) and told["at"] == url


def test_run_without_a_checkpoint_pushes_what_it_left(folder: Path, tmp_path: Path) -> None:
    (folder / "left.py").write_text(
        "import os, pathlib\npathlib.Path(os.environ['HOSTLER_OUTPUT_DIR'], 'model.txt').write_text('w')\n"
    )
    assert hostler(folder, "run", "--name", "left", "left.py").returncode == 0
    refused = hostler(folder, "push", "left", str(tmp_path / "to"), "-y")
    assert refused.returncode and "--outputs pushes the files that it has left" in refused.stderr
    done = hostler(folder, "push", "left", str(tmp_path / "to"), "--outputs", "-y")
    assert done.returncode == 0 and (tmp_path / "to/outputs/model.txt").read_text() == "w", done.stderr
    assert (tmp_path / "to/README.md").is_file()


def test_pickled_weights_reach_the_hub_as_tensors_alone(hub: Hub, folder: Path, tmp_path: Path) -> None:
    (folder / "pickled.py").write_text(PICKLED)
    there = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "MARK": str(tmp_path / "run")}
    there["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # a python with torch
    assert hostler(folder, "run", "--name", "plain", "pickled.py", **there).returncode == 0
    unasked = hostler(folder, "push", "plain", "hf://me/plain", "-y", **there)
    assert unasked.returncode == 2 and "me/plain" not in hub.repos
    assert "last.pt: pickles, which run code where they are loaded" in unasked.stderr.splitlines()[0]

    done = hostler(folder, "push", "plain", "hf://me/plain", "-y", "--pickles", "convert", **there)
    assert done.returncode == 0 and "last.pt: no tensors, left out: epoch" in done.stderr, done.stderr
    from safetensors.numpy import load

    found = load(hub.repos["me/plain"]["last.safetensors"])
    assert {name: value.tolist() for name, value in found.items()} == {"model.w": [1, 2], "moments.0": [0, 0]}
    assert "last.pt" not in hub.repos["me/plain"]

    assert hostler(folder, "run", "--name", "evil", "pickled.py", "--evil", **there).returncode == 0
    refused = hostler(folder, "push", "evil", str(tmp_path / "to"), "-y", "--pickles", "convert", **there)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr, refused.stderr
    assert "evil.pt is not converted: it holds more than plain tensors" in refused.stderr
    assert not (tmp_path / "run").exists() and not (tmp_path / "to").exists()
