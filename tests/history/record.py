"""Doses of faults, run one after the other, and the table of docs/reliability.md made of what they gave.

    make reliability                                # every dose that this commit has not had
    python tests/history/record.py killer-folder    # this one
    python tests/history/record.py --short 300      # those that took, or should take, no more seconds
    python tests/history/record.py --found vms "a VM was left; 0123abcd mended it"
    python tests/history/record.py --table          # only the table, from what is noted

Each dose is noted in `doses.json` as soon as it is over: interrupted, the next call goes on after it. A dose
that was never run has a row that says so.
"""

from __future__ import annotations

import datetime
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NOTES, PAGE = "tests/history/doses.json", "docs/reliability.md"
KILLER, MIXED = "tests/faults/test_killer.py", "tests/history/test_mixed_faults.py"
SMALL_FOLDER = f"{KILLER}::test_nothing_is_lost_and_nothing_counted_twice_in_a_folder"
SMALL_BUCKET = f"{KILLER}::test_nothing_is_lost_or_counted_twice_in_a_bucket"
LONG_FOLDER = f"{KILLER}::test_nothing_is_lost_or_doubled_long_in_a_folder"
LONG_BUCKET = f"{KILLER}::test_nothing_is_lost_or_doubled_long_in_a_real_bucket"
EACH_FOLDER = f"{MIXED}::test_runs_survive_each_fault_once_in_a_folder"
EACH_BUCKET = f"{MIXED}::test_runs_survive_each_fault_once_in_a_bucket"
OWN = "tests/history/test_doses.py"
TEN_THOUSAND = f"{OWN}::test_ten_thousand_runs_survive_ten_minutes_of_kills"
TORCH = f"{OWN}::test_torch_training_by_hand_survives_twenty_kills_a_seed"
TORCH_WORKER = f"{OWN}::test_torch_training_of_a_worker_survives_a_hundred_kills"
GROUP = f"{OWN}::test_group_of_thirty_two_in_one_process_survives_kills"
LIBRARY = "tests/history/test_library_histories.py"
HAND = f"{LIBRARY}::test_script_by_hand_survives_a_hundred_kills"
GANG_OF_FOUR = f"{LIBRARY}::test_gang_of_four_survives_a_kill_each_ten_seconds"
FLEET = "tests/model/test_week_of_a_fleet.py::test_week_of_a_fleet_of_eight_passes_the_checker"
WEEKS = "tests/model/test_three_weeks.py::test_script_of_weeks_survives_five_hundred_preemptions"
FUZZ = "tests/fuzz/test_fuzz.py::test_damaged_input_is_read_or_refused_for_minutes"
TPE = "tests/faults/test_searches.py::test_two_hundred_trials_by_eight_workers"
VMS = "tests/walks/test_gce_walk.py::test_sweep_on_preempted_spot_vms_has_the_same_weights[40-6-18]"
TOGETHER = "tests/walks/test_together_walk.py::test_108_linear_models_are_trained_together_and_each_as_alone"
GANG = (
    "tests/walks/test_gce_gang.py::test_vm_preempted_mid_epoch_changes_no_bit_and_leaves_nothing"
    "[4-4-member-False-train3]"
)
SEEDS = (1, 2, 3, 4)
BUCKETS = ("seaweed", "gcs", "azurite")
# Variables that make a dose smaller, or another one. A row must be what its command alone gives.
LESSENING = ("HOSTLER_DOSE", "HOSTLER_FUZZ_MINUTES", "HOSTLER_DEEDS", "HOSTLER_SEED")
BEGIN, END = "<!-- doses: begin -->", "<!-- doses: end -->"


@dataclass(frozen=True)
class Dose:
    name: str
    faults: str
    command: str
    minutes: int = 3  # that it takes on two cores, about


@dataclass(frozen=True)
class Row:
    """A dose as it was run."""

    dose: str
    faults: str
    command: str
    commit: str
    date: str
    seconds: int
    result: str
    found: str = ""  # the defect that it found, and the commit that mended it


Known = Callable[[str], bool]


def _pytest(test: str) -> str:
    return f".venv/bin/python -m pytest {shlex.quote(test)}"


def _mixed(place: str) -> str:
    return f"{MIXED}::test_runs_survive_mixed_faults_long_in_a_{place}"


def _seeded(seed: int, test: str) -> str:
    return f"HOSTLER_SEED={seed} {_pytest(test)}"


DOSES = (
    Dose("killer-folder", "kills and freezes, 8 runs, folder", _pytest(SMALL_FOLDER)),
    Dose("killer-bucket", "kills and freezes, 8 runs, SeaweedFS", _pytest(SMALL_BUCKET)),
    Dose("mixed-short", "each fault once, 6 runs, folder", _seeded(2, EACH_FOLDER)),
    *(
        Dose(f"mixed-{store}", f"each fault once, 6 runs, {store}", _seeded(2, f"{EACH_BUCKET}[{store}]"))
        for store in BUCKETS
    ),
    Dose("weeks", "500 preemptions of a script of three weeks, virtual clock", _seeded(1, WEEKS)),
    Dose("fleet-week", "a week of 8 workers, 60 runs, virtual clock", _seeded(1, FLEET)),
    *(
        Dose(f"hand-{store}", f"100 kills of a script by hand, {store}", _seeded(5, f"{HAND}[{store}]"))
        for store in ("folder", "seaweed")
    ),
    Dose("gang-of-4", "gang of 4 workers, a kill each 10 s, 30 kills", _seeded(5, GANG_OF_FOUR), 12),
    Dose("gang-vms", "gang of 4 emulated VMs, a member killed", _pytest(GANG)),
    Dose("group-of-32", "32 runs in one process, 6 kills", _pytest(GROUP), 15),
    Dose("together", "108 runs in one process", _pytest(TOGETHER), 10),
    Dose("torch-by-hand", "100 kills of a torch training by hand", f"{_seeded(11, TORCH)} -m soak", 10),
    *(
        Dose(
            f"torch-{store}",
            f"100 kills of a torch training, {store}",
            _seeded(11, f"{TORCH_WORKER}[{store}]"),
            12,
        )
        for store in ("folder", *BUCKETS)
    ),
    Dose("tpe", "kills, 200 trials of TPE, 8 workers", _pytest(TPE), 8),
    Dose("vms", "40 runs on 6 emulated VMs, 18 strikes", _pytest(VMS), 12),
    *(
        Dose(f"mixed-folder-{n}", "60 mixed faults, 30 runs, folder", _pytest(f"{_mixed('folder')}[{n}]"), 6)
        for n in SEEDS
    ),
    *(
        Dose(
            f"mixed-{store}-{n}",
            f"60 mixed faults, 30 runs, {store}",
            _pytest(f"{_mixed('bucket')}[{store}-{n}]"),
            8,
        )
        for store in BUCKETS
        for n in SEEDS
    ),
    Dose("fuzz", "every reader of outside input, two minutes each", f"{_pytest(FUZZ)} -m soak", 80),
    Dose("killer-folder-long", "kills and freezes, 300 runs, folder", _pytest(LONG_FOLDER), 15),
    Dose("killer-bucket-long", "kills and freezes, 300 runs, SeaweedFS", _pytest(LONG_BUCKET), 15),
    *(
        Dose(
            f"killer-10000-{store}",
            f"10,000 runs, 16 workers, 10 minutes of kills, {store}",
            _seeded(11, f"{TEN_THOUSAND}[{store}]"),
            180,
        )
        for store in ("folder", *BUCKETS)
    ),
)


def left(doses: Iterable[Dose], rows: Sequence[Row], commit: str) -> list[Dose]:
    """Doses that this commit has not had. Pure."""
    had = {row.dose for row in rows if row.commit == commit}
    return [dose for dose in doses if dose.name not in had]


def table(rows: Sequence[Row], doses: Sequence[Dose] = (), known: Known = lambda commit: True) -> str:
    """The newest row of each dose, as the page shows it, with what earlier ones found; then doses that were
    never run. `known`: whether a reader finds a commit. Pure."""
    newest = {row.dose: row for row in rows}
    ranks = {dose.name: n for n, dose in enumerate(doses)}
    lines = ["| dose | command | commit | date | seconds | result |", "|---|---|---|---|---|---|"]
    for row in sorted(newest.values(), key=lambda row: ranks.get(row.dose, -1)):
        told = list(dict.fromkeys(one.found for one in rows if one.dose == row.dose and one.found))
        commit = f"`{row.commit}`" if known(row.commit) else "an earlier commit"
        cells = (f"{row.dose}: {row.faults}", f"`{row.command}`", commit, row.date)
        result = "; ".join([row.result, *(f"found: {text}" for text in told)])
        lines.append(f"| {' | '.join(cells)} | {row.seconds} | {result} |")
    for dose in doses:
        if dose.name not in newest:
            lines.append(f"| {dose.name}: {dose.faults} | `{dose.command}` | | | | not run yet |")
    return "\n".join(lines)


def with_table(
    page: str, rows: Sequence[Row], doses: Sequence[Dose] = (), known: Known = lambda commit: True
) -> str:
    """The page with this table between its marks. Pure."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table(rows, doses, known)}\n{END}{after}"


@dataclass(frozen=True)
class Book:
    """The rows that are noted, and the page that shows them."""

    notes: Path
    page: Path
    doses: Sequence[Dose] = DOSES

    def rows(self) -> list[Row]:
        return [Row(**row) for row in json.loads(self.notes.read_text())] if self.notes.exists() else []

    def note(self, row: Row) -> None:
        self._write([*self.rows(), row])

    def note_found(self, dose: str, what: str) -> None:
        """Write what a dose found, and what mended it, beside its newest row."""
        rows = self.rows()
        last = max((n for n, row in enumerate(rows) if row.dose == dose), default=None)
        if last is None:
            sys.exit(f"record: {dose} was not run yet: run it first, by its name alone")
        rows[last] = replace(rows[last], found=what)
        self._write(rows)

    def _write(self, rows: Sequence[Row]) -> None:
        fresh = self.notes.with_suffix(".tmp")
        fresh.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
        os.replace(fresh, self.notes)
        self.show()

    def show(self) -> None:
        self.page.write_text(with_table(self.page.read_text(), self.rows(), self.doses, in_history))


def run(dose: Dose, commit: str) -> Row:
    """Run a dose to its end; its output goes to this terminal. A service that is missing is a failure, not a
    dose that was had."""
    begun = time.monotonic()
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
    env = {name: value for name, value in os.environ.items() if name not in LESSENING}
    code = subprocess.run(dose.command, shell=True, cwd=ROOT, env={**env, "CI": "true"}).returncode
    result = "passed" if code == 0 else f"FAILED ({code})"
    return Row(dose.name, dose.faults, dose.command, commit, date, round(time.monotonic() - begun), result)


def the_commit(root: Path = ROOT) -> str:
    """The newest commit that changed more than the notes and their page, and whether more is changed since:
    what is noted of one dose must not make the next call run it again."""
    rest = ["--", ".", *(f":(exclude){name}" for name in (NOTES, PAGE))]
    try:
        newest = _git(root, "log", "-1", "--abbrev=10", "--format=%h", *rest)
        return newest + ("-dirty" if _git(root, "status", "--porcelain", *rest) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def in_history(commit: str, root: Path = ROOT) -> bool:
    """Whether a commit is in the history of this tree; where nobody can tell, it counts as there."""
    try:
        if has_history(root):
            _git(root, "merge-base", "--is-ancestor", commit.removesuffix("-dirty"), "HEAD")
    except subprocess.CalledProcessError:
        return False
    return True


def has_history(root: Path = ROOT) -> bool:
    """Whether this tree has all its commits: a copy of the files has none, a shallow clone has some."""
    try:
        return _git(root, "rev-parse", "--is-shallow-repository") == "false"
    except (OSError, subprocess.CalledProcessError):
        return False


def _git(root: Path, *words: str) -> str:
    argv = ["git", "-C", str(root), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def short(doses: Iterable[Dose], rows: Sequence[Row], seconds: float) -> list[Dose]:
    """Doses that took no longer when they were run last; of others, those that should. Pure."""
    took = {row.dose: row.seconds for row in rows}
    return [dose for dose in doses if took.get(dose.name, 60 * dose.minutes) <= seconds]


def main(words: Sequence[str], book: Book, doses: Sequence[Dose] = DOSES) -> int:
    if "--table" in words:
        book.show()
        return 0
    if words[:1] == ["--found"] and len(words) == 3:
        book.note_found(words[1], words[2])
        return 0
    if words[:1] == ["--short"] and len(words) == 2 and words[1].isdigit():
        chosen = short(doses, book.rows(), int(words[1]))
    else:
        chosen = [dose for dose in doses if not words or dose.name in words]
        if unknown := set(words) - {dose.name for dose in doses}:
            names = " ".join(dose.name for dose in doses)
            sys.exit(f"record: no dose is called {', '.join(sorted(unknown))}: {names}")
    commit, failed = the_commit(), 0
    for dose in left(chosen, book.rows(), commit):
        row = run(dose, commit)
        book.note(row)
        failed += row.result != "passed"
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Book(ROOT / NOTES, ROOT / PAGE)))
