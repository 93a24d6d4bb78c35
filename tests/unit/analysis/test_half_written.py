"""A store in which one object is not what was written: every reader shows the rest, and names the object."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import servers
from hostler.analysis.board import shape
from hostler.analysis.board.live import LiveStore
from hostler.analysis.frame import columns
from hostler.analysis.plots import draw
from hostler.analysis.plots.drawing import KINDS
from hostler.analysis.report import report
from hostler.cli.main import cli
from hostler.errors import DamagedError
from hostler.records.series import packing
from hostler.records.sweep import sweeps
from hostler.store import open_store
from seen_world import Seen, learning

servers.library("pandas")
servers.library("plotly")

DAMAGE = {
    "cut": b'{"format": 1, "ki',
    "empty": b"",
    "bytes": b"\xff\xfe\x00",
    "none of ours": b'{"format": 1, "kind": "zebra"}',
    "another shape": b"[1, 2]",
    "no number": b'{"format": "new", "kind": "end"}',
    "odd fields": b'{"format": 1, "kind": "end", "state": "failed", "failure": "x", "metrics": [1]}',
    "odd metrics": b'{"format": 1, "kind": "end", "state": "done", "metrics": {"accuracy": 5, "x": null}}',
    "newer": b'{"format": 99}',
}

SHORT = ("cut", "odd fields", "newer")

OBJECTS = {
    "an end": "sweeps/grid/log/0000001-*-000002.json",
    "a claim": "sweeps/grid/log/0000002-*-000001.json",
    "an open claim": "sweeps/grid/log/0000003-*-000001.json",
    "a copy of an end": "sweeps/grid/ends/0000001-*.json",
    "a tag": "sweeps/grid/tags/*.json",
    "a halt": "sweeps/grid/halts/*.json",
    "a spec": "sweeps/grid/spec/*.json",
    "a journal": "sweeps/learn/journal/*.json",
    "a segment": "sweeps/many/segments/*",
    "a heartbeat": "alive/*.json",
    "the project": "project/*.json",
    "a fragment": "runs/0000000-grid-*/metrics/*",
    "a launch": "fleets/burst/000001/spec.json",
    "a ledger": "ledger/grid/000001.json",
}


NAMED = ["an end", "an open claim", "a tag", "a spec", "a segment", "a fragment"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    seen = Seen(tmp_path_factory.mktemp("half") / "store")
    grid = seen.submit("grid", [{"lr": lr, "epochs": 3} for lr in (0.1, 0.01, 0.001, 0.2, 0.3)])
    for index, params in enumerate(grid.runs[:3]):
        seen.claim(grid, index)
        failed = {"state": "failed", "message": "no luck"} if index == 2 else {}
        seen.end(grid, index, points=seen.curve(grid, index, learning(params, 3)), **failed)
    seen.claim(grid, 3)
    seen.beat(grid, 3, 1, 2, accuracy=0.5)
    sweeps.tag(seen.store, "grid", "", ["paper"], [])
    sweeps.halt(seen.store, "grid", "5 errors in a row")
    seen.submit("learn", [], search="random")
    many = seen.submit("many", [{"lr": n / 10} for n in range(1, 9)])
    for index, params in enumerate(many.runs):
        seen.claim(many, index)
        seen.end(many, index, points=seen.curve(many, index, learning(params, 2)))
    packing.compact(seen.store, many)
    for key in ("sweeps/learn/journal/000001.json", "ledger/grid/000001.json"):
        _write(
            seen.folder / key,
            {
                "format": 1,
                "params": {"lr": 1},
                "kind": "spent",
                "cost": 1.0,
                "fleet": "burst",
                "generation": 1,
            },
        )
    _write(
        seen.folder / "fleets/burst/000001/spec.json",
        {"format": 1, "fleet": "burst", "number": 1, "price": 1.0},
    )
    return seen.folder


def _write(path: Path, record: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


@pytest.fixture
def broken(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], tuple[str, str]]:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "store"
    shutil.copytree(whole, folder)

    def damage(what: str, how: str) -> tuple[str, str]:
        path = next(folder.glob(OBJECTS[what]))
        path.write_bytes(DAMAGE[how])
        return str(folder), str(path.relative_to(folder))

    return damage


def status(url: str, *words: str) -> str:
    answer = CliRunner().invoke(cli, ["status", "--store", url, *words])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize(
    "how", [one if one in SHORT else pytest.param(one, marks=pytest.mark.soak) for one in DAMAGE]
)
def test_status_and_dashboard_show_the_rest(
    broken: Callable[[str, str], tuple[str, str]], what: str, how: str
) -> None:
    url, _ = broken(what, how)
    for words in ((), ("--sweeps",), ("--json",)):
        assert "many" in status(url, *words)
    live = LiveStore(open_store(url), lambda: 0.0)
    live.look()
    assert len(live.sweeps["many"].rows) == 8
    assert all(shape.sweep(one)["name"] for one in live.sweeps.values())


@pytest.mark.parametrize(
    "what", ["an end", "an open claim", "a tag", "a halt", "a spec", "a heartbeat", "the project"]
)
def test_status_and_dashboard_name_what_is_damaged(
    broken: Callable[[str, str], tuple[str, str]], what: str
) -> None:
    url, key = broken(what, "cut")
    assert status(url).count(key) == 1
    live = LiveStore(open_store(url), lambda: 0.0)
    live.look()
    words = [live.trouble, *(one.trouble for one in live.sweeps.values())]
    words += [str(row.failure) for one in live.sweeps.values() for row in one.rows.values()]
    assert any(key in word for word in words) or what == "a heartbeat"


def test_run_with_a_damaged_log_is_unreadable_and_not_waiting(
    broken: Callable[[str, str], tuple[str, str]],
) -> None:
    url, key = broken("an end", "cut")
    rows = json.loads(CliRunner().invoke(cli, ["status", "--store", url, "--json", "grid"]).stdout)
    assert [row["state"] for row in rows] == ["done", "unreadable", "failed", "running", "queued"]
    lines = json.loads(
        CliRunner().invoke(cli, ["status", "--store", url, "--json", "--sweeps", "grid"]).stdout
    )
    assert lines[0]["counts"] == {"queued": 1, "running": 1, "done": 1, "failed": 1, "unreadable": 1}
    errors = CliRunner().invoke(cli, ["errors", "--store", url])
    assert errors.exit_code == 0 and key in errors.output and "no luck" in errors.output


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("how", ["cut", "odd fields"])
def test_frame_plots_and_report_show_the_rest(
    broken: Callable[[str, str], tuple[str, str]], what: str, how: str
) -> None:
    url, key = broken(what, how)
    store, said = open_store(url), list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = columns(store, say=said.append)
        assert found["sweep"].count("many") == 8
        assert any(key in line for line in said) or what not in NAMED
        for kind in KINDS:
            draw(url, kind, metric="accuracy")
        assert "many" in report(store, "many")
        if what != "a spec":
            assert "no luck" in report(store, "grid") or what == "an end"


@pytest.mark.parametrize("how", ["cut", "odd metrics"])
def test_damaged_end_keeps_no_other_from_archive_and_frame(
    broken: Callable[[str, str], tuple[str, str]], how: str
) -> None:
    url, key = broken("an end", how)
    said: list[str] = []
    assert columns(open_store(url), say=said.append)["sweep"].count("many") == 8
    assert any(key in line for line in said)
    answer = CliRunner().invoke(cli, ["archive", "--store", url, "--top", "20", "-y"])
    assert answer.exit_code == 0 and key in answer.stderr
    assert len(answer.stdout.splitlines()) == 9
    logs = CliRunner().invoke(cli, ["logs", "--store", url, "grid/1"])
    assert isinstance(logs.exception, (type(None), SystemExit, DamagedError))  # said in a line
