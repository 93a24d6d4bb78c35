"""The checker finds planted violations, one test for each way to break a rule, and none in what is good."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import checker
import pytest
from checker import FENCED, LEFT, ONE_END, STEPS, WEIGHTS
from killer import RUN, farm, keys_of, often, send, until
from made_evidence import fragment
from rawrecords import taken_apart
from recorder import undisturbed
from test_killer import COUNT

from hostler.records.checkpoint import checkpoints
from hostler.records.packs import packer
from hostler.records.packs.packed_store import PackedStore
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store.folder import FolderStore

pytestmark = pytest.mark.timeout(600)
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Good:
    """Evidence of a real run that was killed after its first checkpoint, and of one that was not."""

    folder: Path
    run: str  # was killed, and went on

    def path(self, pattern: str) -> Path:
        """The last object whose key fits."""
        return sorted((self.folder / "store").glob(pattern))[-1]

    def edit(self, pattern: str, **facts: object) -> None:
        path = self.path(pattern)
        path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))

    def log(self) -> list[dict[str, Any]]:
        paths = sorted((self.folder / "store").glob(f"sweeps/*/log/{self.run}-*.json"))
        return [json.loads(path.read_text()) for path in paths]

    def append(self, **facts: object) -> None:
        """One more entry of the log."""
        path = self.path(f"sweeps/*/log/{self.run}-*.json")
        path.with_name(f"{self.run}-{len(self.log()) + 1:06d}.json").write_text(json.dumps(facts))

    def rewrite(self, change: Callable[[dict[str, Any]], None]) -> None:
        """The history, with a change of some of its events."""
        path = self.folder / "history.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()]
        for event in events:
            change(event)
        path.write_text("".join(json.dumps(event) + "\n" for event in events if event))

    def points(self, change: Callable[[list[Any]], list[Any]]) -> None:
        """The newest fragment of the run, with other points."""
        path = self.path(f"runs/{self.run}/metrics/*")
        header, points = taken_apart(path.read_bytes())
        path.write_bytes(fragment(header, change(points)))

    def found(self) -> set[str]:
        return {violation.rule for violation in checker.check(self.folder)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Good]:
    folder = tmp_path_factory.mktemp("good")
    with farm(str(folder / "store"), folder) as made:
        (made.code / "count.py").write_text(COUNT)
        runs = ({"i": 0}, {"i": 4})
        command = (sys.executable, "count.py")
        slow = {"PACE": "4"}  # there is time to kill it between its first checkpoint and its end
        job = made.submit(Job(name="count", command=command, runs=runs, env=slow, **often()))  # type: ignore[arg-type]
        words = {key.run: ("--i", str(i)) for key, i in zip(keys_of(job), (0, 4), strict=True)}
        first = next(iter(words))
        with made.record(job) as history:
            history.expect(undisturbed(COUNT, folder / "undisturbed", words))
            made.start("--slots", "1")
            until(lambda: checkpoints.committed(made.store, first), why=made.said)
            for pid in made.processes(RUN):
                send(pid, signal.SIGKILL)
            made.finish(job, workers=1)
        assert history.close(list(words), made.cache, folder / "tmp") == []
        yield Good(history.folder, first)


@pytest.fixture
def good(made: Good, tmp_path: Path) -> Good:
    return Good(Path(shutil.copytree(made.folder, tmp_path / "copy")), made.run)


def test_untouched_evidence_of_a_killed_run_passes(good: Good) -> None:
    assert good.found() == set()
    assert [entry["kind"] for entry in good.log()].count("claim") == 2, "it was killed, and went on"
    events = [json.loads(line) for line in (good.folder / "history.jsonl").read_text().splitlines()]
    assert {"started", "entry", "saved", "read", "left"} <= {event["what"] for event in events}


def packed(good: Good) -> None:
    store = PackedStore(FolderStore(good.folder / "store"))
    assert packer.pack(store, sweeps.load(store, "count"), lambda seconds: None).runs == 2
    assert good.log() == []


def entry_missing_in_a_pack(good: Good) -> None:
    packed(good)
    path = good.path("sweeps/*/sealed/*")
    data = path.read_bytes()
    seal = json.loads(zlib.decompress(data[8:]))
    seal["heads"][0] -= 1
    path.write_bytes(data[:8] + zlib.compress(json.dumps(seal).encode()))


def late_write_over_a_pack(good: Good) -> None:
    fenced = good.path(f"sweeps/*/log/{good.run}-*.json").parents[1] / "ends" / f"{good.run}-000001.json"
    packed(good)
    fenced.parent.mkdir()
    fenced.write_text('{"kind": "end", "state": "failed"}')


@pytest.mark.parametrize("plant", [packed, late_write_over_a_pack])
def test_packed_evidence_passes_as_it_did_before(good: Good, plant: Callable[[Good], None]) -> None:
    plant(good)
    assert good.found() == set()


@pytest.mark.parametrize(("late", "rules"), [(True, set()), (False, {WEIGHTS})])
def test_commit_without_files_passes_only_of_a_fenced_sleeper(
    good: Good, late: bool, rules: set[str]
) -> None:
    newest = good.path(f"runs/{good.run}/checkpoints/*/COMMIT")
    record = {**json.loads(newest.read_bytes()), "attempt": 1, "step": 90}
    slept = newest.parent.with_name("000001-000000000090") / "COMMIT"
    slept.parent.mkdir()
    slept.write_text(json.dumps(record))
    path = good.folder / "history.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    saved = json.dumps({"what": "saved", "t": 0, "run": good.run, "attempt": 1, "step": 90, "files": 1})
    lines.insert(len(lines) if late else 0, f"{saved}\n")
    path.write_text("".join(lines))
    assert good.found() == rules


def test_checker_runs_without_hostler_on_the_standard_library(good: Good) -> None:
    probe = (
        "import sys; sys.argv[:] = sys.argv[1:]; sys.path.insert(0, sys.argv[0]); import checker\n"
        "code = checker.main(sys.argv[1:])\n"
        "foreign = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "assert foreign <= {'checker', 'rawpacks', 'rawrecords', '__main__'}, foreign\n"
        "sys.exit(code)"
    )
    words = [sys.executable, "-I", "-S", "-c", probe, str(HERE), str(good.folder)]
    answer = subprocess.run(words, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (0, "2 runs, 0 violations\n"), answer.stderr


@pytest.mark.parametrize(("by", "rules"), [(1e-7, set()), (1e-3, {STEPS})])
def test_values_pass_within_the_rounding_that_is_allowed(good: Good, by: float, rules: set[str]) -> None:
    def change(event: dict[str, Any]) -> None:
        for row in event["runs"].values() if event["what"] == "expected" else ():
            row["near"] = 1e-5
            row["curves"] = {n: [(k, v * (1 + by)) for k, v in own] for n, own in row["curves"].items()}

    good.rewrite(change)
    found = good.found()  # what was shown meanwhile is held against the curves as well
    assert rules <= found <= (rules and {*rules, FENCED})


def second_end(good: Good) -> None:
    good.append(**{**good.log()[-1], "token": "other", "at": 1.0, "state": "failed"})


def end_of_a_fenced_attempt(good: Good) -> None:
    good.edit(f"sweeps/*/log/{good.run}-*.json", attempt=1)


def claim_after_the_end(good: Good) -> None:
    good.append(kind="claim", token="late", session="zombie")


def hole_in_the_log(good: Good) -> None:
    good.path(f"sweeps/*/log/{good.run}-000002.json").unlink()


def changed_entry(good: Good) -> None:
    good.edit(f"sweeps/*/log/{good.run}-000001.json", token="rewritten")


def copy_of_another_end(good: Good) -> None:
    good.edit(f"sweeps/*/ends/{good.run}-*.json", state="stopped")


def lost_stop(good: Good) -> None:
    """A person stops attempt 1; attempt 2 ends done nevertheless."""
    folder = good.path(f"sweeps/*/log/{good.run}-000001.json").parent
    claim, end = good.log()[0], good.log()[-1]
    for path in folder.glob(f"{good.run}-*"):
        path.unlink()
    stop = {"kind": "stop-request", "reason": "person"}
    for entry in (claim, stop, {"kind": "claim", "session": "b"}, {**end, "attempt": 3}):
        (folder / f"{good.run}-{len(good.log()) + 1:06d}.json").write_text(json.dumps(entry))


def reader_shows_a_fenced_end(good: Good) -> None:
    def change(event: dict[str, Any]) -> None:
        if event.get("reader") == "hostler status" and event["when"] == "after":
            event["runs"][good.run]["state"] = "failed"

    good.rewrite(change)


def reader_shows_a_fenced_metric(good: Good) -> None:
    def change(event: dict[str, Any]) -> None:
        if event.get("reader") == "hostler df":
            event["runs"][good.run]["curves"]["value"][1][1] += 1

    good.rewrite(change)


def reader_brings_a_fenced_checkpoint(good: Good) -> None:
    def change(event: dict[str, Any]) -> None:
        if event.get("reader") == "hostler pull":
            event["runs"][good.run]["files"]["state.json"] = "0" * 64

    good.rewrite(change)


def asked_after(good: Good, reader: str, change: Callable[[dict[str, Any]], object]) -> None:
    """What a reader showed of the killed run afterwards, changed."""

    def changed(event: dict[str, Any]) -> None:
        if event.get("reader") == f"hostler {reader}" and good.run in event["runs"]:
            change(event["runs"][good.run])

    good.rewrite(changed)


def best_shows_a_fenced_value(good: Good) -> None:
    asked_after(good, "best", lambda row: row["metrics"].update(dict.fromkeys(row["metrics"], 7.5)))


def best_leaves_a_run_out(good: Good) -> None:
    good.rewrite(lambda event: event.update(ranked=event["ranked"][1:]) if "ranked" in event else None)


def best_ranks_by_fenced_values(good: Good) -> None:
    good.rewrite(lambda event: event["ranked"].reverse() if "ranked" in event else None)


def show_counts_a_fenced_attempt_too_much(good: Good) -> None:
    asked_after(good, "show", lambda row: row["tried"].append(9))


def show_takes_a_fenced_point_for_the_greatest(good: Good) -> None:
    asked_after(good, "show", lambda row: row["totals"]["value"].update(max=1e9))


def show_names_a_deleted_checkpoint(good: Good) -> None:
    asked_after(good, "show", lambda row: row["kept"].append("1-99"))


def show_leaves_the_newest_checkpoint_out(good: Good) -> None:
    asked_after(good, "show", lambda row: row["kept"].pop(0))


def logs_show_fenced_lines_as_the_winners(good: Good) -> None:
    asked_after(good, "logs", lambda row: row["printed"]["2"].append(row["printed"]["1"][0]))


def logs_leave_out_a_line_of_the_winner(good: Good) -> None:
    asked_after(good, "logs", lambda row: row["printed"]["2"].pop())


def logs_show_an_attempt_that_never_was(good: Good) -> None:
    asked_after(good, "logs", lambda row: row["printed"].update({"3": ["line"]}))


def metrics_finds_a_value_again(good: Good) -> None:
    asked_after(good, "metrics", lambda row: row["again"]["metrics"].append("value"))


def metrics_names_what_was_never_measured(good: Good) -> None:
    asked_after(good, "metrics", lambda row: row["again"]["own"].append("accuracy"))


def reader_saw_what_never_was(good: Good) -> None:
    row = {"state": "paused", "attempts": 1, "metrics": {}}
    event = {"what": "read", "reader": "hostler status", "when": "meanwhile", "runs": {good.run: row}}
    with (good.folder / "history.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n")


def checkpoint_of_an_attempt_without_a_claim(good: Good) -> None:
    newest = good.path(f"runs/{good.run}/checkpoints/*/COMMIT").parent
    shutil.copytree(newest, newest.with_name("000099-000000000001"))


def attempt_goes_on_after_points_that_never_were(good: Good) -> None:
    path = good.path(f"runs/{good.run}/metrics/*")
    header, points = taken_apart(path.read_bytes())
    assert header["origin"]
    path.write_bytes(fragment({**header, "origin": {**header["origin"], "position": 99}}, points))


def nobody_read(good: Good) -> None:
    good.rewrite(lambda event: event.clear() if event["what"] == "read" else None)


def step_missing(good: Good) -> None:
    good.points(lambda points: [point for point in points if point[0] != 8])


def step_twice(good: Good) -> None:
    good.points(lambda points: [*points, *[point for point in points if point[0] == 8]])


def steps_out_of_order(good: Good) -> None:
    good.points(lambda points: points[::-1])


def value_of_another_run(good: Good) -> None:
    good.points(lambda points: [(step, {n: v + 1 for n, v in row.items()}) for step, row in points])


def flipped_byte(good: Good) -> None:
    path = good.path(f"runs/{good.run}/checkpoints/*/files/*")
    path.write_bytes(b"?" + path.read_bytes()[1:])


def missing_file(good: Good) -> None:
    good.path(f"runs/{good.run}/checkpoints/*/files/*").unlink()


def checkpoint_of_another_training(good: Good) -> None:
    """Whole in itself: COMMIT has the hash of these bytes."""
    path = good.path(f"runs/{good.run}/checkpoints/*/files/*")
    path.write_bytes(b"other")
    file = {
        "name": "state.json",
        "n": 0,
        "parts": 1,
        "size": 5,
        "sha256": hashlib.sha256(b"other").hexdigest(),
    }
    good.edit(f"runs/{good.run}/checkpoints/*/COMMIT", files=[file])


def left(kind: str, name: str) -> Callable[[Good], None]:
    def plant(good: Good) -> None:
        good.rewrite(lambda event: event.update({kind: [name]}) if event["what"] == "left" else None)

    return plant


def key(name: str) -> Callable[[Good], None]:
    def plant(good: Good) -> None:
        path = good.folder / "store" / name
        path.parent.mkdir(parents=True)
        path.write_text("{}")

    return plant


def half_a_checkpoint(good: Good) -> None:
    newest = good.path(f"runs/{good.run}/checkpoints/*/COMMIT").parent
    later = newest.with_name(f"{newest.name[:7]}{int(newest.name[7:]) + 1:012d}")
    shutil.copytree(newest, later)
    (newest / "COMMIT").unlink()


def nobody_looked(good: Good) -> None:
    good.rewrite(lambda event: event.clear() if event["what"] == "left" else None)


PLANTED: list[tuple[str, str, Callable[[Good], None]]] = [
    (ONE_END, "second end", second_end),
    (ONE_END, "end of a fenced attempt", end_of_a_fenced_attempt),
    (ONE_END, "claim after the end", claim_after_the_end),
    (ONE_END, "entry missing in a pack", entry_missing_in_a_pack),
    (ONE_END, "hole in the log", hole_in_the_log),
    (ONE_END, "changed entry", changed_entry),
    (ONE_END, "copy of another end", copy_of_another_end),
    (ONE_END, "lost stop", lost_stop),
    (FENCED, "reader shows an end", reader_shows_a_fenced_end),
    (FENCED, "reader shows a metric", reader_shows_a_fenced_metric),
    (FENCED, "reader brings a checkpoint", reader_brings_a_fenced_checkpoint),
    (FENCED, "best shows a value", best_shows_a_fenced_value),
    (FENCED, "best leaves a run out", best_leaves_a_run_out),
    (FENCED, "best ranks by other values", best_ranks_by_fenced_values),
    (FENCED, "show has an attempt", show_counts_a_fenced_attempt_too_much),
    (FENCED, "show has a point", show_takes_a_fenced_point_for_the_greatest),
    (FENCED, "show has a checkpoint", show_names_a_deleted_checkpoint),
    (FENCED, "show lacks a checkpoint", show_leaves_the_newest_checkpoint_out),
    (FENCED, "logs have a line", logs_show_fenced_lines_as_the_winners),
    (FENCED, "logs lack a line", logs_leave_out_a_line_of_the_winner),
    (FENCED, "logs have an attempt", logs_show_an_attempt_that_never_was),
    (FENCED, "metrics reads a value again", metrics_finds_a_value_again),
    (FENCED, "metrics has another name", metrics_names_what_was_never_measured),
    (FENCED, "reader saw what never was", reader_saw_what_never_was),
    (FENCED, "checkpoint without a claim", checkpoint_of_an_attempt_without_a_claim),
    (FENCED, "points that never were", attempt_goes_on_after_points_that_never_were),
    (FENCED, "nobody read", nobody_read),
    (STEPS, "missing", step_missing),
    (STEPS, "twice", step_twice),
    (STEPS, "out of order", steps_out_of_order),
    (STEPS, "other values", value_of_another_run),
    (WEIGHTS, "flipped byte", flipped_byte),
    (WEIGHTS, "missing file", missing_file),
    (WEIGHTS, "another training", checkpoint_of_another_training),
    (LEFT, "process", left("processes", "4242 python -m hostler.worker")),
    (LEFT, "file", left("files", "/tmp/cache/runs/1")),
    (LEFT, "machine", left("machines", "vm-1")),
    (LEFT, "group", left("groups", "group-1")),
    (LEFT, "mount", left("mounts", "/tmp/farm/disk")),
    (LEFT, "secret", key("secrets/fleet/000001.json")),
    (LEFT, "launch", key("fleets/fleet/000001/spec.json")),
    (LEFT, "half a checkpoint", half_a_checkpoint),
    (LEFT, "nobody looked", nobody_looked),
]


@pytest.mark.parametrize(
    ("rule", "plant"), [(r, p) for r, _, p in PLANTED], ids=[f"{r}: {n}" for r, n, _ in PLANTED]
)
def test_planted_violation_is_found_under_its_rule(
    good: Good, rule: str, plant: Callable[[Good], None]
) -> None:
    plant(good)
    assert rule in good.found()
