"""Stores that once broke a promise, each by name, over every verb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from arena import ALL, TAKING, WORKER, Attack
from enemy import KINDS, OUTSIDE, RAW, Code, Deed, Node, Points, Replace, Rows, Special, Stray

# what an object is → where one is in the honest store
OBJECTS = {
    "spec": "sweeps/grid/spec/000001.json",
    "claim": "sweeps/grid/log/0000000-grid-*-000001.json",
    "end": "sweeps/grid/log/0000000-grid-*-000002.json",
    "copy of an end": "sweeps/grid/ends/0000000-grid-*-000002.json",
    "tag": "sweeps/grid/tags/000001.json",
    "halt": "sweeps/grid/halts/000001.json",
    "turn": "sweeps/grid/turns/*.json",
    "rung": "sweeps/grid/rungs/*/*.json",
    "journal": "sweeps/learn/journal/000001.json",
    "trash": "sweeps/old/trash/*.json",
    "segment": "sweeps/old/segments/000001",
    "seal": "sweeps/kept/sealed/*",
    "pack": "sweeps/kept/packs/*",
    "bundle": "runs/0000001-grid-*/checkpoints/000001-000000000002/files/000000",
    "bundled outputs": "runs/0000001-grid-*/outputs/*/COMMIT",
    "heartbeat": "alive/w-1.json",
    "launch": "fleets/burst/000001/spec.json",
    "ledger": "ledger/grid/000001.json",
    "fragment": "runs/0000000-grid-*/metrics/*",
    "output": "runs/0000000-grid-*/logs/*",
    "checkpoint": "runs/0000000-grid-*/checkpoints/*/COMMIT",
    "file of a checkpoint": "runs/0000000-grid-*/checkpoints/*/files/000000",
    "outputs": "runs/0000000-grid-*/outputs/*/COMMIT",
    "environment": "runs/0000000-grid-*/env/000001.json",
    "surroundings": "surroundings/*.json",
    "tracked": "runs/0000000-grid-*/trackers/000001/tensorboard.json",
    "archived": "archive/0000000-grid-*/COMMIT",
    "archived curves": "archive/0000000-grid-*/curves",
    "terms": "archive/terms/000001.json",
    "entered": "archive/entered/0000000-grid-*.json",
    "project": "project/000001.json",
    "code": "code/*[0-9a-f]",
}
FOLDERS = {
    "a run": "runs/0000001-old-*",
    "a trashed run's checkpoints": "runs/0000001-old-*/checkpoints",
    "a run's logs": "runs/0000000-grid-*/logs",
    "a sweep": "sweeps/old",
    "a sweep's log": "sweeps/grid/log",
    "segments": "sweeps/old/segments",
    "the archive of a run": "archive/0000000-grid-*",
    "heartbeats": "alive",
    "fleets": "fleets",
}
TOGETHER = {  # folders that no verb needs for what it does with the others
    "a run, a sweep's log and heartbeats": ("a run", "a sweep's log", "heartbeats"),
    "checkpoints, logs, segments and fleets": (
        "a trashed run's checkpoints",
        "a run's logs",
        "segments",
        "fleets",
    ),
    "a sweep and an archived run": ("a sweep", "the archive of a run"),
}
GROUPS = 6  # several objects at once, each of another kind; the long dose has them one by one
BYTES = ("deep lists", "deep in a field", "half a record", "null")
NOT_FILES = ("fifo", "link to a file")
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
BUNDLED = "runs/0000001-grid-*/checkpoints/000001-000000000002/COMMIT"
CHECKPOINT, AGAIN = OBJECTS["checkpoint"], "runs/0000000-again-*/checkpoints/*/COMMIT"

Find = Callable[[str], str]


def _group(number: int) -> list[str]:
    return list(OBJECTS.values())[number::GROUPS]


def _turns(count: int) -> list[object]:
    """Every object meets another of so many things at each turn: the first now, the others in the long
    dose."""
    return [0, *(pytest.param(turn, marks=pytest.mark.soak) for turn in range(1, count))]


def _row(**fields: object) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(fields.items()))


@pytest.fixture(scope="session")
def find(honest: Path) -> Find:
    """The last key of the honest store that fits a pattern."""
    return lambda pattern: str(max(honest.glob(pattern)).relative_to(honest))


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("turn", _turns(len(BYTES)))
def test_records_of_other_bytes_are_bad_records(attack: Attack, find: Find, turn: int, group: int) -> None:
    names = [BYTES[(n + group + turn) % len(BYTES)] for n in range(len(OBJECTS))]
    deeds = [
        Replace(find(pattern), RAW[name], name) for pattern, name in zip(_group(group), names, strict=False)
    ]
    _keeps(attack, deeds)


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("turn", _turns(len(NOT_FILES)))
def test_pipes_and_links_under_keys_hang_nothing(attack: Attack, find: Find, turn: int, group: int) -> None:
    kinds = [NOT_FILES[(n + group + turn) % len(NOT_FILES)] for n in range(len(OBJECTS))]
    _keeps(
        attack,
        [Special(find(pattern), kind) for pattern, kind in zip(_group(group), kinds, strict=False)],
    )


@pytest.mark.soak
@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_object_of_another_kind_is_one_bad_object(
    attack: Attack, find: Find, what: str, kind: str
) -> None:
    _keeps(attack, [Special(find(OBJECTS[what]), kind)])


@pytest.mark.soak
@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("name", RAW)
def test_any_bytes_are_one_bad_record(attack: Attack, find: Find, what: str, name: str) -> None:
    _keeps(attack, [Replace(find(OBJECTS[what]), RAW[name], name)])


@pytest.mark.parametrize("group", TOGETHER)
def test_folders_that_lead_out_are_left_alone(attack: Attack, find: Find, group: str) -> None:
    _keeps(attack, [Special(f"{find(FOLDERS[name])}/", "link to a folder") for name in TOGETHER[group]])


@pytest.mark.soak
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_that_leads_out_is_left_alone(attack: Attack, find: Find, folder: str) -> None:
    _keeps(attack, [Special(f"{find(FOLDERS[folder])}/", "link to a folder")])


@pytest.mark.parametrize(
    ("depth", "parts"),
    [
        pytest.param(depth, parts, marks=[] if parts == depth % 3 else pytest.mark.soak)
        for depth in range(3, 7)
        for parts in range(3)
    ],
)
def test_no_row_is_written_through_a_link(attack: Attack, find: Find, depth: int, parts: int) -> None:
    """By its name the link lies deep, and so leads nowhere outside by its text; its folder is one and the
    same, and the last row would write to where it leads."""
    link = f"{'../' * depth}home/.bashrc"
    rows = (_row(name="s", link="."), _row(name=f"{'s/' * depth}x", link=link), _row(name="x", parts=parts))
    _keeps(attack, [Rows(find(CHECKPOINT), rows)], TAKING)


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_file_or_link_that_leads_out_is_not_restored(attack: Attack, find: Find, name: str) -> None:
    files, links = (_row(name=name),), (_row(name="x", link=name), _row(name="x/y"))
    for patterns in ((CHECKPOINT, OBJECTS["archived"]), (OBJECTS["outputs"],)):  # each by a verb of its own
        _keeps(attack, [Rows(find(pattern), files) for pattern in patterns], TAKING)
        _keeps(attack, [Rows(find(pattern), links, True) for pattern in patterns], TAKING)


BAD = {
    "mode with setuid": lambda find: [Rows(find(CHECKPOINT), (_row(mode=0o6777),))],
    "a file twice": lambda find: [Rows(find(CHECKPOINT), (_row(name="a"), _row(name="a")))],
    "a file below a file": lambda find: [Rows(find(CHECKPOINT), (_row(name="a"), _row(name="a/b")))],
    "1e12 parts": lambda find: [Rows(find(CHECKPOINT), (_row(parts=10**12),))],
    "-1 parts": lambda find: [Rows(find(CHECKPOINT), (_row(parts=-1),))],
    "archived file of 1e12 parts": lambda find: [Rows(find(OBJECTS["archived"]), (_row(parts=10**12),))],
    "segment of 3e8 rows": lambda find: [Node(find(OBJECTS["segment"]), ("rows",), 300_000_000)],
    "segment of 3e8 equal runs": lambda find: [
        Node(find(OBJECTS["segment"]), ("rows",), 300_000_000),
        Node(find(OBJECTS["segment"]), ("run",), ["all", "x"]),
    ],
    "archived curves of 3e8 rows": lambda find: [
        Node(find(OBJECTS["archived curves"]), ("rows",), 300_000_000),
        Node(find(OBJECTS["archived curves"]), ("run",), ["all", "x"]),
    ],
    "seal of much": lambda find: [Replace(find(OBJECTS["seal"]), RAW["seal of much"], "much")],
    "seal within its bounds": lambda find: [
        Replace(find(OBJECTS["seal"]), RAW["seal within its bounds"], "within")
    ],
    "seal of 1e6 entries": lambda find: [Node(find(OBJECTS["seal"]), ("heads", 0), 1_000_000)],
    "seal of two runs in one place": lambda find: [Node(find(OBJECTS["seal"]), ("start", 1), 8)],
    "seal of 1e12 bytes": lambda find: [Node(find(OBJECTS["seal"]), ("size", 0), 10**12)],
    "seal that leads out": lambda find: [Node(find(OBJECTS["seal"]), ("packs", 0), "../../../x")],
    "pack of much": lambda find: [Replace(find(OBJECTS["pack"]), RAW["pack of much"], "much")],
    "pack of zeros": lambda find: [Replace(find(OBJECTS["pack"]), RAW["pack of zeros"], "zeros")],
    "object of 1e12 bytes": lambda find: [Node(find(OBJECTS["pack"]), (0, 1), 10**12)],
    "object of another run": lambda find: [Node(find(OBJECTS["pack"]), (0, 0), "sweeps/../x")],
    "bundle row that points outside": lambda find: [Node(find(BUNDLED), ("files", 0, "at"), 10**15)],
    "bundle row that points before": lambda find: [Node(find(BUNDLED), ("files", 0, "at"), -4)],
    "bundle row of much": lambda find: [Node(find(BUNDLED), ("files", 0, "size"), 10**12)],
    "bundled output outside": lambda find: [
        Node(find(OBJECTS["bundled outputs"]), ("files", 0, "at"), 10**15)
    ],
    "fragment with a short point": lambda find: [Points(find(OBJECTS["fragment"]), ((None, 2, b"xyz"),))],
    "fragment with a short name": lambda find: [Points(find(OBJECTS["fragment"]), ((None, 1, b"x"),))],
    "fragment with an unknown set": lambda find: [Points(find(OBJECTS["fragment"]), ((None, 4, bytes(40)),))],
    "fragment longer than it is": lambda find: [Points(find(OBJECTS["fragment"]), ((2**32 - 1, 2, b""),))],
    "stray log fragment": lambda find: [Stray(find("runs/0000000-grid-*/logs") + "/x", b"text")],
    "stray metric fragment": lambda find: [Stray(find("runs/0000000-grid-*/metrics") + "/x-y-z", b"text")],
    "stray checkpoint": lambda find: [Stray(find("runs/0000000-grid-*/checkpoints") + "/x/COMMIT", b"{}")],
    "mark of a checkpoint": lambda find: [
        Stray(
            find(OBJECTS["checkpoint"]).replace("COMMIT", "KEEP"), b'{"files": [{"name": "../x", "n": -1}]}'
        )
    ],
    "stray outputs": lambda find: [Stray(find("runs/0000000-grid-*/outputs") + "/x/COMMIT", b"{}")],
    "stray log entry": lambda find: [Stray("sweeps/grid/log/²²²²²²²-grid-x-²²²²²².json", b"{}")],
    "stray sweep": lambda find: [Stray("sweeps/two words/spec/000001.json", b"{}")],
    "stray launch": lambda find: [Stray("fleets/burst/x/spec.json", b"{}")],
    "escapes in output": lambda find: [Replace(find(OBJECTS["output"]), ESCAPE.encode(), "escapes")],
    "escapes in a traceback": lambda find: [
        Node(find(f"sweeps/grid/{folder}/0000002-grid-*-000002.json"), ("failure", field), ESCAPE)
        for folder in ("log", "ends")
        for field in ("message", "traceback")
    ],
    "escapes in names": lambda find: [
        Node(find(OBJECTS["spec"]), ("title",), ESCAPE),
        Node(find(OBJECTS["spec"]), ("tags",), [ESCAPE]),
        Node(find(OBJECTS["spec"]), ("runs", 0), {ESCAPE: ESCAPE}),
        Node(find(OBJECTS["claim"]), ("host",), ESCAPE),
        Node(find(OBJECTS["tag"]), ("add",), [ESCAPE]),
        Node(find(OBJECTS["halt"]), ("why",), ESCAPE),
    ],
    "escapes in metrics": lambda find: [
        Node(find(f"sweeps/grid/{folder}/0000000-grid-*-000002.json"), ("metrics", ESCAPE), _TOTAL)
        for folder in ("log", "ends")
    ],
}
_TOTAL = {"last": 1.0, "min": 1.0, "max": 1.0, "step": 1}


PAIRS = (
    ("seal of much", "bundle row that points outside"),
    ("seal of 1e6 entries", "bundle row of much"),
    ("pack of much", "bundled output outside"),
    ("object of another run", "bundle row that points before"),
)
APART = [
    name for name in BAD if not name.startswith(("stray", "escapes", "seal", "pack", "object", "bundle"))
]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in APART else pytest.mark.soak) for name in BAD]
)
def test_a_bad_record_is_one_bad_record(attack: Attack, find: Find, name: str) -> None:
    _keeps(attack, BAD[name](find))


@pytest.mark.parametrize("what", ["stray", "escapes"])
def test_several_bad_records_are_one_bad_record_each(attack: Attack, find: Find, what: str) -> None:
    _keeps(attack, [deed for name in BAD if name.startswith(what) for deed in BAD[name](find)])


@pytest.mark.parametrize("names", PAIRS, ids=lambda names: names[0])
def test_bad_packs_and_bundles_are_one_bad_record_each(
    attack: Attack, find: Find, names: tuple[str, str]
) -> None:
    _keeps(attack, [deed for name in names for deed in BAD[name](find)])


@pytest.mark.parametrize(
    "kind", ["names", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("bomb", "many"))]
)
def test_code_of_an_enemy_stays_in_its_folder(attack: Attack, find: Find, kind: str) -> None:
    _keeps(attack, [Code(find(OBJECTS["spec"]), kind)], TAKING)


@pytest.mark.parametrize("question", ["deep_body", "many_indices"])
def test_a_question_to_the_dashboard_is_bounded(attack: Attack, question: str) -> None:
    _keeps(attack, [], [(f"dashboard:{question}",)])


RESTORED = {
    **{
        f"through a link {depth} up": (
            _row(name="s", link="."),
            _row(name=f"{'s/' * depth}x", link=f"{'../' * depth}home/.bashrc"),
            _row(name="x", parts=0),
        )
        for depth in (4, 5, 6, 7)
    },
    "mode with setuid": (_row(mode=0o6777),),
    "1e12 parts": (_row(parts=10**12),),
}


@pytest.mark.parametrize("name", RESTORED)
def test_a_worker_restores_only_what_stays_inside(attack: Attack, find: Find, name: str) -> None:
    _keeps(attack, [Rows(find(AGAIN), RESTORED[name])], [WORKER], 40.0)


def test_a_worker_does_good_runs_beside_bad_ones(attack: Attack, find: Find) -> None:
    deeds: list[Deed] = [
        Replace(find("sweeps/waiting/spec/000001.json"), RAW["deep lists"]),
        Replace(find("sweeps/grid/log/0000000-grid-*-000002.json"), RAW["deep in a field"]),
        Special(find(AGAIN), "fifo"),
        Replace(find(OBJECTS["journal"]), RAW["null"]),
        Stray("sweeps/two words/spec/000001.json", b"{}"),
        Special(find(OBJECTS["heartbeat"]), "fifo"),
    ]
    _keeps(attack, deeds, [WORKER], 40.0)


def test_a_worker_unpacks_code_into_its_cache_alone(attack: Attack, find: Find) -> None:
    _keeps(attack, [Code(find("sweeps/waiting/spec/000001.json"), "names")], [WORKER], 40.0)


def _keeps(
    attack: Attack, deeds: Sequence[Deed], verbs: Sequence[Sequence[str]] = ALL, seconds: float = 10.0
) -> None:
    found = attack(deeds, verbs, seconds)
    assert not found, "\n".join([*map(str, deeds), *map(str, found)])
