"""A store in which one object is none of ours: every verb names it in a line, and shows all the rest."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hostler.cli.main import cli
from hostler.errors import HostlerError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.packs import packer
from hostler.records.packs.packed_store import PackedStore
from hostler.records.series import packing, segments
from hostler.records.series.metrics import fragment
from seen_world import Seen, learning

DEEP = b"[" * 200_000
VERBS = {
    "status": ["status"],
    "status --sweeps": ["status", "--sweeps"],
    "status --json": ["status", "--json"],
    "show": ["show", "grid/1"],
    "show another": ["show", "grid/0"],
    "logs": ["logs", "grid/1"],
    "logs another": ["logs", "grid/0"],
    "errors": ["errors"],
    "best": ["best", "grid"],
    "cost": ["cost"],
    "cost --explain": ["cost", "--explain"],
    "metrics": ["metrics", "grid", "--pattern", r"from (?P<number>\d)"],
    "push": ["push", "grid/0", "pushed", "-y"],
    "df": ["df"],
    "wait": ["wait", "grid/0"],
    "diff": ["diff", "grid/0", "grid/2"],
    "archive": ["archive", "--top", "3", "-y"],
    "archived": ["archive"],
    "trend": ["archive", "--trend"],
    "pull": ["pull", "grid/0"],
    "stop": ["stop", "grid/4"],
    "retry": ["retry", "grid/2"],
    "tag": ["tag", "grid/0", "+x"],
    "pause": ["pause", "grid/4"],
    "resume": ["resume", "grid/2", "--no-start"],
    "attach another": ["attach", "grid/0"],
    "plot": ["plot", "results", "grid", "-o", "drawn/results.png"],
    "report": ["report", "grid", "-o", "drawn/grid.html"],
    "export": ["export", "grid", "--to", "tensorboard"],
}
RARELY = ("pause", "resume", "attach another", "archived", "trend", "plot", "report", "export")


def _segment(rows: int) -> bytes:
    header: dict[str, Any] = {
        "format": 1,
        "sweep": "many",
        "rows": rows,
        "run": ["all", "0000000-many-abcdef"],
        "k": ["all", 2],
        "apart": [],
        "end": {name: [None, ["all", "done"]] for name in segments.FACTS},
        "params": {},
        "totals": {},
        "tracks": [],
    }
    return segments.head(header)


BAD: dict[str, tuple[str, bytes]] = {
    "deep end": ("sweeps/grid/log/0000001-*-000002.json", DEEP),
    "deep claim": ("sweeps/grid/log/0000003-*-000001.json", DEEP),
    "deep tables": ("sweeps/grid/log/0000001-*-000002.json", b'{"a":' * 900 + b"1" + b"}" * 900),
    "long number": (
        "sweeps/grid/log/0000001-*-000002.json",
        b'{"format":1,"kind":"end","at":' + b"9" * 5000 + b"}",
    ),
    "odd times": (
        "sweeps/grid/log/0000001-*-000002.json",
        b'{"format":1,"kind":"end","state":"done","at":NaN,"started":1e300,"seconds":Infinity}',
    ),
    "huge metric": (
        "sweeps/grid/log/0000001-*-000002.json",
        b'{"format":1,"kind":"end","state":"done","metrics":{"accuracy":{"last":1'
        + b"0" * 400
        + b',"min":0,"max":0,"step":1}}}',
    ),
    "odd session": (
        "sweeps/grid/log/0000003-*-000001.json",
        b'{"format":1,"kind":"claim","session":"../../x"}',
    ),
    "odd state": ("sweeps/grid/log/0000001-*-000002.json", b'{"format":1,"kind":"end","state":["done"]}'),
    "wide segment": ("sweeps/many/segments/000001", _segment(300_000_000)),
    "deep segment": ("sweeps/many/segments/000001", b"HSTS" + struct.pack("<HHI", 1, 0, len(DEEP)) + DEEP),
    "long commit": (
        "runs/0000001-grid-*/checkpoints/*/COMMIT",
        encode({"files": [{"name": "w", "n": 0, "parts": 10**12, "size": 1, "sha256": "0"}]}),
    ),
    "odd commit": ("runs/0000001-grid-*/checkpoints/*/COMMIT", encode({"files": {"name": 7}})),
    "odd outputs": ("runs/0000001-grid-*/outputs/*/COMMIT", encode({"files": [7]})),
    "cut fragment": (
        "runs/0000001-grid-*/metrics/*",
        fragment({"attempt": 1, "start": 0}, struct.pack("<IB", 3, 2) + b"abc"),
    ),
    "odd fragment": (
        "runs/0000001-grid-*/metrics/*",
        fragment({"attempt": "1", "start": [], "origin": 7}, b""),
    ),
    "deep fragment": ("runs/0000001-grid-*/metrics/*", b"HSTM" + struct.pack("<HI", 1, len(DEEP)) + DEEP),
    "deep heartbeat": ("alive/w-1.json", DEEP),
    "odd heartbeat": ("alive/w-1.json", encode({"runs": {"x": 7}, "only": 3})),
    "odd room": ("alive/w-1.json", encode({"runs": {}, "room": {"gpus": 1, "gpu_memory": "much"}})),
    "deep environment": ("runs/0000001-grid-*/env/000001.json", DEEP),
    "deep tracker": ("runs/0000001-grid-*/trackers/000001/wandb.json", DEEP),
    "deep tag": ("sweeps/grid/tags/*.json", DEEP),
    "deep halt": ("sweeps/grid/halts/*.json", DEEP),
    "deep launch": ("fleets/burst/000001/spec.json", DEEP),
    "odd launch": ("fleets/burst/000001/spec.json", encode({"fleet": 7, "price": "x", "sweeps": 5})),
    "deep worker": ("fleets/burst/000001/workers/w-1.json", DEEP),
    "deep ledger": ("ledger/grid/000001.json", DEEP),
    "deep project": ("project/000001.json", DEEP),
    "deep archive": ("archive/0*/COMMIT", DEEP),
    "deep entered": ("archive/entered/*.json", DEEP),
    "deep spec": ("sweeps/spare/spec/000001.json", DEEP),
    "endless spec": (
        "sweeps/spare/spec/000001.json",
        encode({"name": "spare", "command": ["x"], "rounds": [{"kind": "grid", "count": 10**18}]}),
    ),
}
_LISTS = b'{"runs":[' + b"[]," * 300_000 + b"[]]}"
_FILE = {"name": "w", "n": 0, "parts": 1, "size": 4, "sha256": "0"}
BAD |= {
    "damaged seal": ("sweeps/kept/sealed/*", b"HSTL\x01\x00\x00\x00" + bytes(100)),
    "wide seal": ("sweeps/kept/sealed/*", b"HSTL\x01\x00\x00\x00" + zlib.compress(_LISTS, 9)),
    "damaged chunk": ("sweeps/kept/packs/*", b"HSTP\x01\x00\x00\x00" + bytes(4000)),
    "cut pack": ("sweeps/kept/packs/*", b"HSTP"),
    "bundle outside": (
        "runs/0000001-grid-*/checkpoints/*/COMMIT",
        encode({"format": 2, "files": [{**_FILE, "at": 10**15}]}),
    ),
    "bundle before": (
        "runs/0000001-grid-*/outputs/*/COMMIT",
        encode({"format": 2, "files": [{**_FILE, "at": -4}]}),
    ),
}
STRAYS = [
    "sweeps/grid/log/notes.txt",
    "sweeps/grid/log/0000001x-grid-000001.json",
    "sweeps/grid/log/0000001-grid-00000\u00b2.json",
    "sweeps/grid/ends/.0000001-grid-000002.json.swp",
    "sweeps/grid/tags/x.json",
    "sweeps/grid/halts/x",
    "sweeps/grid/trash/x-1.json",
    "sweeps/grid/segments/x",
    "sweeps/grid/turns/x",
    "sweeps/grid/rungs/x/y.json",
    "sweeps/a b/spec/000001.json",
    "runs/RUN/logs/notes.txt",
    "runs/RUN/logs/1-2",
    "runs/RUN/metrics/notes.txt",
    "runs/RUN/checkpoints/notes/COMMIT",
    "runs/RUN/outputs/notes/COMMIT",
    "runs/RUN/trackers/notes/x",
    "runs/RUN/gang/000001/notes",
    "alive/a b.json",
    "alive/deep/x.json",
    "fleets/a b/000001/spec.json",
    "fleets/burst/x/spec.json",
    "notices/x",
    "archive/9 9/COMMIT",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("bad") / "store")


def store_of(folder: Path) -> Path:
    seen = Seen(folder)
    grid = seen.submit("grid", [{"lr": lr, "epochs": 3} for lr in (0.1, 0.01, 0.001, 0.2, 0.3)])
    for index, params in enumerate(grid.runs[:3]):
        run = grid.run_id(index)
        seen.claim(grid, index)
        seen.log(grid, index, f"hello from {index}\n")
        work = folder.parent / f"work-{index}"
        work.mkdir()
        (work / "weights.txt").write_text("w" * 100)
        checkpoints.save(seen.store, run, Place(1, 3), work, lambda: {"position": 3}, lambda: None)
        seen.store.put(layout.output_file(run, 1, 0), b"fine")
        sha = hashlib.sha256(b"fine").hexdigest()
        seen.store.put(
            layout.output_commit(run, 1),
            encode({"run": run, "files": [{"name": "report.txt", "size": 4, "sha256": sha, "n": 0}]}),
        )
        seen.store.put(layout.environment(run, 1), encode({"python": {"version": "3.11"}}))
        seen.store.put(layout.tracked(run, 1, "wandb"), encode({"kind": "wandb", "id": "x", "attempt": 1}))
        failed: dict[str, Any] = {"state": "failed", "message": "no luck"} if index == 2 else {}
        seen.end(grid, index, points=seen.curve(grid, index, learning(params, 3)), **failed)
    seen.claim(grid, 3)
    seen.beat(grid, 3, 1, 2, accuracy=0.5)
    many = seen.submit("many", [{"lr": n / 10} for n in range(1, 9)])
    for index, params in enumerate(many.runs):
        seen.claim(many, index)
        seen.end(many, index, points=seen.curve(many, index, learning(params, 2)))
    packing.compact(seen.store, many)
    seen.submit("spare", [{"lr": 1.0}])
    kept = seen.submit("kept", [{"lr": 2.0}, {"lr": 3.0}])
    for index, params in enumerate(kept.runs):
        seen.claim(kept, index)
        seen.end(kept, index, points=seen.curve(kept, index, learning(params, 2)))
    packer.pack(PackedStore(seen.store), kept, lambda seconds: None)
    put = seen.store.put
    put(layout.tag("grid", 1), encode({"run": "", "add": ["paper"], "remove": []}))
    put(layout.halt("grid", 1), encode({"why": "a person"}))
    put(layout.halt("grid", 2), encode({"why": "lifted"}))
    put(
        layout.ledger_entry("grid", 1),
        encode({"kind": "spent", "cost": 1.0, "fleet": "burst", "generation": 1}),
    )
    put(
        layout.generation_spec("burst", 1),
        encode({"fleet": "burst", "number": 1, "price": 1.0, "sweeps": ["grid"]}),
    )
    put(layout.fleet_worker("burst", 1, "w-1"), encode({"seconds": 3600.0, "over": True, "final": True}))
    answer = _type(folder, "archive", "--top", "2", "-y")
    assert answer.exit_code == 0, answer.output
    return folder


@pytest.fixture
def store(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    yield Path(shutil.copytree(whole, tmp_path / "store"))


def _type(store: Path, *words: str) -> Any:
    return CliRunner().invoke(cli, [words[0], "--store", str(store), *words[1:]])


def _said(answer: Any) -> str:
    """What a person reads: the verb's own lines, and that of the error it ended with."""
    error = answer.exception
    if error is not None and not isinstance(error, (SystemExit, HostlerError)):
        raise error
    return f"{answer.stderr}{error if isinstance(error, HostlerError) else ''}"


def _damage(store: Path, name: str) -> str:
    pattern, data = BAD[name]
    path = max(store.glob(pattern))
    path.write_bytes(data)
    return str(path.relative_to(store))


# Verbs that come upon the object, and so name it.
NAMED = {
    "deep end": [
        "cost --explain",
        "metrics",
        "status",
        "status --sweeps",
        "show",
        "logs",
        "errors",
        "best",
        "df",
        "archive",
    ],
    "deep claim": ["status", "df"],
    "wide segment": ["status", "df"],
    "long commit": ["show"],
    "odd commit": ["show"],
    "odd outputs": ["show"],
    "cut fragment": ["show", "df", "metrics"],
    "deep fragment": ["show", "df", "metrics"],
    "deep heartbeat": ["status"],
    "odd room": ["status"],
    "deep environment": ["show"],
    "deep tag": ["status", "df"],
    "deep launch": ["status", "cost"],
    "deep worker": ["status", "cost"],
    "deep ledger": ["status", "cost"],
    "deep spec": ["status", "cost", "df"],
    "endless spec": ["status", "cost", "df"],
    "deep project": ["status"],
    "damaged seal": ["status", "status --sweeps", "df", "cost --explain", "errors", "archive"],
    "wide seal": ["status", "df"],
    "damaged chunk": ["status", "df"],
    "bundle before": ["show"],
    "deep tables": ["status", "show", "logs", "errors", "df"],
    "long number": ["status", "show", "logs", "errors", "df"],
    "odd times": ["status", "show", "logs", "errors", "df"],
    "huge metric": ["status", "show", "logs", "errors", "df"],
    "odd session": ["status", "df"],
    "odd state": ["status", "show", "logs", "errors", "df"],
    "deep segment": ["status", "errors", "df"],
    "odd fragment": ["show", "df"],
    "odd heartbeat": ["status", "errors", "df"],
    "deep tracker": ["show"],
    "deep halt": ["status", "status --sweeps"],
    "odd launch": ["status", "cost"],
    "deep archive": ["archived"],
    "deep entered": ["trend"],
}  # all but two: a cut pack and bytes beyond an object are found when their bytes are wanted
REFUSED = {("deep project", "export")}  # into which project of the tool it belongs cannot be told
OFTEN = ("deep end", "wide segment", "odd commit", "cut fragment", "wide seal", "damaged chunk")


def _dose(name: str, verb: str) -> tuple[pytest.MarkDecorator, ...]:
    if verb in RARELY:
        often = name == OFTEN[0] and verb != "plot"  # which loads most
    else:
        often = name in OFTEN or (name, verb) == ("long commit", "show")
    return () if often else (pytest.mark.soak,)


@pytest.mark.parametrize(
    ("name", "verb"), [pytest.param(name, verb, marks=_dose(name, verb)) for name in BAD for verb in VERBS]
)
def test_bad_record_is_named_and_the_rest_is_shown(
    store: Path, whole: Path, tmp_path: Path, name: str, verb: str
) -> None:
    good = _type(Path(shutil.copytree(whole, tmp_path / "good")), *VERBS[verb])
    for made in [path for path in tmp_path.iterdir() if path.name not in ("store", "good", "cache")]:
        shutil.rmtree(made)
    key = _damage(store, name)
    answer = _type(store, *VERBS[verb])
    words = _said(answer)
    if (name, verb) in REFUSED:
        assert answer.exit_code == 1 and key in words, words
        return
    assert not isinstance(answer.exception, HostlerError), words
    assert answer.exit_code == good.exit_code, words
    if verb in NAMED.get(name, ()):
        assert words.count(key) == 1, words
    if verb in ("status", "df"):
        assert "many" in answer.stdout


@pytest.mark.parametrize(
    "name",
    [one if "logs" in one or "log/" in one else pytest.param(one, marks=pytest.mark.soak) for one in STRAYS],
)
def test_stray_name_changes_nothing(store: Path, whole: Path, name: str) -> None:
    run = next(store.glob("runs/0000001-grid-*")).name
    path = store / name.replace("RUN", run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    for words in (["status", "--json"], ["logs", "grid/1"], ["show", "grid/1"], ["df", "grid"]):
        answer = _type(store, *words)
        assert answer.exit_code == 0, (words, _said(answer), answer.exception)
        if words[0] == "status":
            names = [row["name"] for row in json.loads(answer.stdout)]
            assert len(names) == len(set(names)) == 16
        if words[0] == "logs" and "/logs/" in name:
            assert answer.stderr.count(str(path.relative_to(store))) == 1
            assert answer.stdout == "hello from 1\n"


LAST = "sweeps/last/spec/000001.json"
NEWEST = {
    "best": ("kept/0  accuracy=", ["best"]),
    "logs": ("none of these 2 runs", ["logs"]),
    "logs --json": ("none of these 2 runs", ["logs", "--json"]),
    "report": ("kept.html", ["report"]),
}


@pytest.mark.parametrize("verb", NEWEST)
def test_damaged_newest_sweep_is_named_and_the_one_before_shown(store: Path, verb: str) -> None:
    path = store / LAST
    path.parent.mkdir(parents=True)
    path.write_bytes(DEEP)
    answer = _type(store, *NEWEST[verb][1])
    words = _said(answer)
    assert answer.exit_code == 0, words
    assert words.count(LAST) == 1 and "the newest sweep that can be read is kept" in words
    assert NEWEST[verb][0] in words + answer.stdout


@pytest.mark.parametrize("verb", ["retry", "wait"])
def test_damaged_newest_sweep_is_not_changed_or_waited_for(store: Path, verb: str) -> None:
    path = store / LAST
    path.parent.mkdir(parents=True)
    path.write_bytes(DEEP)
    answer = _type(store, verb)
    words = _said(answer)
    assert answer.exit_code == 1 and words.count("\n") == 0, words
    assert f"the newest sweep cannot be read: {LAST}" in words and f"hostler {verb} SWEEP" in words


@pytest.mark.parametrize("name", ["deep spec", "deep heartbeat"])
@pytest.mark.parametrize("verb", ["gc", "rm --empty"])
def test_damage_stops_a_deletion_until_it_is_waived(
    store: Path, monkeypatch: pytest.MonkeyPatch, name: str, verb: str
) -> None:
    monkeypatch.setenv("HOSTLER_GC_GRACE", "0")
    more = ["--state", "failed"] if verb == "gc" else []
    assert more or _type(store, "rm", "grid/2", "-y").exit_code == 0
    before, key = _files(store), _damage(store, name)
    refused = _type(store, *verb.split(), *more, "-y")
    words = _said(refused)
    assert refused.exit_code == 1 and words.count("\n") == 0, words
    assert f"nothing was deleted: {key}" in words and f"hostler {verb} --skip-damaged" in words
    assert _files(store) == before
    waived = _type(store, *verb.split(), *more, "--skip-damaged", "-y")
    assert waived.exit_code == 0 and waived.stderr.count(key) == 1, _said(waived)
    assert before - _files(store) and Path(store, key).exists()


def _files(store: Path) -> set[Path]:
    return {path for path in store.rglob("checkpoints/*/files/*") if path.is_file()}


def test_store_whose_every_sweep_is_damaged_is_not_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "store" / LAST
    path.parent.mkdir(parents=True)
    path.write_bytes(DEEP)
    words = _said(_type(tmp_path / "store", "logs"))
    assert LAST in words and "no sweep can be read" in words


def test_segment_that_claims_many_rows_takes_no_memory(store: Path) -> None:
    _damage(store, "wide segment")
    tracemalloc.start()
    try:
        answer = _type(store, "status")
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert answer.exit_code == 0 and answer.stderr.count("segments/000001") == 1


def test_sweep_of_no_file_is_not_planned_on(store: Path, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(
        "command: python train.py\nparameters: {lr: [1, 2]}\nmetric: accuracy\n"
    )
    answer = _type(store, "plan", str(tmp_path / "grid.yaml"))
    assert "exists already, as a run and not as a sweep" in _said(answer)
