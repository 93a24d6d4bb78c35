"""Doses of faults, run one after the other, and the table of docs/reliability.md made of what they gave.

    make reliability                                # every dose that this commit has not had
    python tests/history/record.py killer-folder    # this one
    python tests/history/record.py --table          # only the table, from what is noted

Each dose is noted in `doses.json` as soon as it is over: interrupted, the next call goes on after it.
"""

from __future__ import annotations

import datetime
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
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
BEGIN, END = "<!-- doses: begin -->", "<!-- doses: end -->"


@dataclass(frozen=True)
class Dose:
    name: str
    faults: str
    command: str


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


def _pytest(test: str) -> str:
    return f".venv/bin/python -m pytest {shlex.quote(test)}"


def _mixed(place: str) -> str:
    return f"{MIXED}::test_runs_survive_mixed_faults_long_in_a_{place}"


DOSES = (
    Dose("killer-folder", "kills and freezes, 8 runs, folder", _pytest(SMALL_FOLDER)),
    Dose("killer-bucket", "kills and freezes, 8 runs, SeaweedFS", _pytest(SMALL_BUCKET)),
    Dose("mixed-short", "each fault once, 6 runs, folder", f"HOSTLER_SEED=2 {_pytest(EACH_FOLDER)}"),
    Dose("mixed-bucket", "each fault once, 6 runs, SeaweedFS", f"HOSTLER_SEED=2 {_pytest(EACH_BUCKET)}"),
    Dose("weeks", "500 preemptions of a script of three weeks, virtual clock", _pytest(WEEKS)),
    Dose("fuzz", "every reader of outside input, two minutes each", f"{_pytest(FUZZ)} -m soak"),
    Dose("tpe", "kills, 200 trials of TPE, 8 workers", _pytest(TPE)),
    Dose("vms", "40 runs on 6 emulated VMs, 18 strikes", _pytest(VMS)),
    Dose("gang", "gang of 4 emulated VMs, a member killed", _pytest(GANG)),
    Dose("together", "108 runs in one process", _pytest(TOGETHER)),
    Dose("torch", "100 kills of a torch training by hand", f"{_pytest(TORCH)} -m soak"),
    *(
        Dose(f"mixed-folder-{n}", "60 mixed faults, 30 runs, folder", _pytest(f"{_mixed('folder')}[{n}]"))
        for n in SEEDS
    ),
    *(
        Dose(
            f"mixed-bucket-{n}",
            "60 mixed faults, 30 runs, SeaweedFS",
            _pytest(f"{_mixed('real_bucket')}[{n}]"),
        )
        for n in SEEDS
    ),
    *(
        Dose(
            f"killer-10000-{store}",
            f"10,000 runs, 16 workers, 10 minutes of kills, {store}",
            _pytest(f"{TEN_THOUSAND}[{store}]"),
        )
        for store in ("folder", "seaweed", "gcs", "azurite")
    ),
    Dose("killer-folder-long", "kills and freezes, 300 runs, folder", _pytest(LONG_FOLDER)),
    Dose("killer-bucket-long", "kills and freezes, 300 runs, SeaweedFS", _pytest(LONG_BUCKET)),
)


def left(doses: Iterable[Dose], rows: Sequence[Row], commit: str) -> list[Dose]:
    """Doses that this commit has not had. Pure."""
    had = {row.dose for row in rows if row.commit == commit}
    return [dose for dose in doses if dose.name not in had]


def table(rows: Sequence[Row]) -> str:
    """The newest row of each dose, as the page shows it. Pure."""
    newest = {row.dose: row for row in rows}
    lines = ["| dose | command | commit | date | seconds | result |", "|---|---|---|---|---|---|"]
    for row in newest.values():
        cells = (f"{row.dose}: {row.faults}", f"`{row.command}`", f"`{row.commit}`", row.date)
        lines.append(f"| {' | '.join(cells)} | {row.seconds} | {row.result} |")
    return "\n".join(lines)


def with_table(page: str, rows: Sequence[Row]) -> str:
    """The page with this table between its marks. Pure."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"


@dataclass(frozen=True)
class Book:
    """The rows that are noted, and the page that shows them."""

    notes: Path
    page: Path

    def rows(self) -> list[Row]:
        return [Row(**row) for row in json.loads(self.notes.read_text())] if self.notes.exists() else []

    def note(self, row: Row) -> None:
        rows = [*self.rows(), row]
        fresh = self.notes.with_suffix(".tmp")
        fresh.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
        os.replace(fresh, self.notes)
        self.show()

    def show(self) -> None:
        self.page.write_text(with_table(self.page.read_text(), self.rows()))


def run(dose: Dose, commit: str) -> Row:
    """Run a dose to its end; its output goes to this terminal."""
    begun = time.monotonic()
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
    code = subprocess.run(dose.command, shell=True, cwd=ROOT).returncode
    result = "passed" if code == 0 else f"FAILED ({code})"
    return Row(dose.name, dose.faults, dose.command, commit, date, round(time.monotonic() - begun), result)


def the_commit() -> str:
    """The commit, and whether something is changed in it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    answer = subprocess.run(words, capture_output=True, text=True)
    return answer.stdout.strip() or "unknown"


def main(words: Sequence[str], book: Book, doses: Sequence[Dose] = DOSES) -> int:
    if "--table" in words:
        book.show()
        return 0
    chosen = [dose for dose in doses if not words or dose.name in words]
    if unknown := set(words) - {dose.name for dose in doses}:
        sys.exit(f"record: no dose is called {', '.join(sorted(unknown))}: {' '.join(d.name for d in doses)}")
    commit, failed = the_commit(), 0
    for dose in left(chosen, book.rows(), commit):
        row = run(dose, commit)
        book.note(row)
        failed += row.result != "passed"
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Book(HERE / "doses.json", ROOT / "docs" / "reliability.md")))
