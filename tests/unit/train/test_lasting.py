"""A process that trains one group after the other: each has the numbers, folders and output of a new one."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hostler import env
from hostler.records.run import handoff
from hostler.records.run.handoff import NEXT, WAITS
from hostler.sdk.start import CURRENT
from hostler.train import configfile, custom
from hostler.train.fused.group import Group
from hostler.train.fused.lasting import Lasting, _stamp
from seats_world import BASE, Cabin
from worker_world import until

CPU = torch.device("cpu")
RATES = [BASE.but(base_lr=rate) for rate in (0.01, 0.05)]
OTHERS = [BASE.but(base_lr=rate, momentum=0.5) for rate in (0.02, 0.1)]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in sys.modules if name.startswith(custom.MODULE)]:
        monkeypatch.delitem(sys.modules, name)
    torch.set_num_threads(1)
    yield
    CURRENT._runs.clear()


def handed(cabin: Cabin) -> Path:
    """What a worker writes of a group: who is in it, each with a config of its own in its folder."""
    rows = list[dict[str, Any]]()
    for number, config in enumerate(cabin.configs):
        name = f"config-{number}.yaml"
        (cabin.root / name).write_text(configfile.dump(config))
        words = [sys.executable, "-m", "hostler", "train", name]
        rows.append({"argv": words, "cwd": str(cabin.root), "env": cabin.variables(number)})
    handoff.write(cabin.root / "seats.json", {"seats": rows, "limit": None})
    return cabin.root / "seats.json"


def has_left(cabin: Cabin) -> bool:
    return all(cabin.left(number) == {"code": 0} for number in range(len(cabin.configs)))


@pytest.mark.timeout(300)
def test_second_group_in_a_process_has_the_bits_of_a_new_one(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("first", "second", "alone", "kept")]
    for root in roots:
        root.mkdir()
    first, second, alone = Cabin(roots[0], RATES), Cabin(roots[1], OTHERS), Cabin(roots[2], OTHERS)
    kept, given = roots[3], {env.SEATS: str(handed(first)), env.KEPT: str(roots[3]), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "hostler", "train", "config-0.yaml"]
    with (first.root / "log").open("wb") as log:
        process = subprocess.Popen(
            words,
            cwd=first.root,
            env={**os.environ, **first.variables(0), **given},
            stdout=log,
            stderr=log,
        )
    waits, descriptors = kept / WAITS, Path(f"/proc/{process.pid}/fd")
    try:
        until(lambda: waits.exists() or process.poll() is not None, 200)
        assert has_left(first), (first.root / "log").read_text()
        assert handoff.read(waits) == {"pid": process.pid}
        before = len(list(descriptors.iterdir()))
        handoff.write(kept / NEXT, {"seats": str(handed(second)), "log": str(second.root / "log")})
        until(lambda: (has_left(second) and waits.exists()) or process.poll() is not None, 200)
        assert process.poll() is None and not (kept / NEXT).exists()
        assert os.readlink(descriptors / "1") == os.readlink(descriptors / "2") == str(second.root / "log")
        assert len(list(descriptors.iterdir())) == before
    finally:
        process.kill()
        process.wait()
    alone.train()
    for number in range(len(OTHERS)):
        found, wanted = second.weights(number), alone.weights(number)
        assert all(torch.equal(found[name], one) for name, one in wanted.items())
        assert second.stats(number) == alone.stats(number)
        assert "test/last/accuracy" in second.said(number)


def test_nothing_of_a_group_is_left_in_its_process(tmp_path: Path) -> None:
    Cabin(tmp_path, RATES).train()
    assert Lasting().clear()
    assert not [one for one in gc.get_objects() if type(one) is Group]
    assert CURRENT.run is None


def test_data_are_kept_for_a_group_of_the_same() -> None:
    lasting = Lasting()
    data = lasting.data(RATES[0], CPU)
    assert lasting.data(OTHERS[1], CPU) is data, "rates need no other data"
    other = lasting.data(BASE.but(dataset="synthetic/4_2_100"), CPU)
    assert other is not data and lasting.data(RATES[0], CPU) is not data, "one set is kept at a time"


def test_data_of_files_are_read_again_once_one_changes(tmp_path: Path) -> None:
    (tmp_path / "some").write_text("1 1:1 2:0\n0 1:0 2:1\n")
    given = {"data_dir": str(tmp_path), "data_download": False, "data_splits_map": {"train": "train"}}
    config, lasting = BASE.but(dataset="libsvm/some", **given), Lasting()
    data = lasting.data(config, CPU)
    assert lasting.data(config, CPU) is data
    (tmp_path / "some").write_text("1 1:1 2:0\n0 1:0 2:1\n1 1:1 2:1\n")
    assert len(lasting.data(config, CPU).splits["train"]) == 3
    own = BASE.but(dataset="npz/some.npz")
    assert _stamp(own) is None, "a file that anybody may write to is read by each group"


def test_process_with_a_users_code_takes_no_other_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Lasting().clear()
    monkeypatch.setitem(sys.modules, f"{custom.MODULE}my", sys)
    assert not Lasting().clear()
