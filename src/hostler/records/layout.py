"""Functions that make every key of the store; docs/storage.md documents them.

Numbers are zero-padded, so that order is name order. No other module joins strings into keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from hostler.spec.names import check_part, is_part

PROJECT = "project/"
SWEEPS = "sweeps/"
RUNS = "runs/"
ALIVE = "alive/"
FLEETS = "fleets/"
SECRETS = "secrets/"

DIGITS = 15  # a longer number of a key is not hostler's


def number(n: int) -> str:
    return f"{n:06d}"


def numbers(*parts: str) -> tuple[int, ...] | None:
    """The numbers that parts of a key are; None if one is not a number that hostler writes: a stray name."""
    if all(part.isdecimal() and part.isascii() and len(part) <= DIGITS for part in parts):
        return tuple(map(int, parts))
    return None


def project(version: int) -> str:
    return f"{PROJECT}{number(version)}.json"


def fleet(name: str) -> str:
    return f"{FLEETS}{check_part(name)}/"


def generation(name: str, g: int) -> str:
    """A launch of a fleet."""
    return f"{fleet(name)}{number(g)}/"


def closed(name: str, g: int) -> str:
    """No sweep is added to a launch any more."""
    return f"{generation(name, g)}closed.json"


def machines(name: str, g: int) -> str:
    """Description of a launch's machines."""
    return f"{generation(name, g)}machines.json"


def served(name: str, g: int) -> str:
    """The sweeps whose runs a launch takes."""
    return f"{generation(name, g)}serves/"


def served_sweep(name: str, g: int, sweep: str) -> str:
    return f"{served(name, g)}{check_part(sweep)}.json"


def generation_spec(name: str, g: int) -> str:
    """Machines, price, deadline of one launch; whoever creates it may start it."""
    return f"{generation(name, g)}spec.json"


def gone(name: str, g: int) -> str:
    """Nothing of a launch is left, and nothing of it may begin."""
    return f"{generation(name, g)}gone.json"


def secrets(name: str, g: int) -> str:
    """Secrets that only the workers of a launch may read, on platforms without a better place."""
    return f"{SECRETS}{check_part(name)}/{number(g)}.json"


def fleet_workers(name: str, g: int) -> str:
    return f"{generation(name, g)}workers/"


def fleet_worker(name: str, g: int, session: str) -> str:
    """How long one worker process of a launch has been there."""
    return f"{fleet_workers(name, g)}{check_part(session)}.json"


def ledger(name: str) -> str:
    """Money of a sweep: what fleets reserved, returned and spent."""
    return f"ledger/{check_part(name)}/"


def ledger_entry(name: str, n: int) -> str:
    return f"{ledger(name)}{number(n)}.json"


def fleet_log(name: str, job: str) -> str:
    """Output of a fleet's worker itself, where the engine writes it to a folder they all see."""
    return f"fleets/{check_part(name)}/logs/{job}.log"


def code(sha256: str) -> str:
    return f"code/{sha256}"


def code_record(sha256: str) -> str:
    """Commit, diff and file list of a snapshot."""
    return f"code/{sha256}.json"


def library(sha256: str) -> str:
    """hostler itself as one zip, which Python runs as it is."""
    return f"library/{sha256}.zip"


def bytecode(sha256: str, tag: str) -> str:
    """Its code as one kind of Python has compiled it."""
    return f"library/{sha256}.{tag}.zip"


def wheel(sha256: str) -> str:
    """A package that workers need besides the standard library: a store's driver."""
    return f"wheels/{sha256}.whl"


def data(sha256: str) -> str:
    return f"data/{sha256}"


def data_list(sha256: str) -> str:
    """The parts of data that is too large for one object; written when all of them are there."""
    return f"data/{sha256}.json"


def data_parts(sha256: str) -> str:
    return f"data/{sha256}.parts/"


def data_part(sha256: str, n: int, own: str) -> str:
    """Part n, named by its own hash, too."""
    return f"{data_parts(sha256)}{number(n)}-{own}"


def sweep(name: str) -> str:
    return f"{SWEEPS}{check_part(name)}/"


def specs(name: str) -> str:
    return f"{sweep(name)}spec/"


def spec(name: str, version: int) -> str:
    return f"{specs(name)}{number(version)}.json"


def logs_of(name: str) -> str:
    """The prefix of all run logs of a sweep: THE TRUTH."""
    return f"{sweep(name)}log/"


def log_entry(name: str, run: str, k: int) -> str:
    return f"{logs_of(name)}{run}-{number(k)}.json"


def is_log_entry(key: str) -> bool:
    """Whether a key under log/, ends/ or trash/ is ours: editors and backups leave files there, too."""
    run, _, rest = key[key.rindex("/") + 1 :].rpartition("-")
    return is_run(run) and is_entry_number(rest)


def is_run(name: str) -> bool:
    """Whether a name is a run's id: an index, a dash, and what may stand in a key."""
    return name[7:8] == "-" and name[:7].isdecimal() and is_part(name)


def are_runs(names: Sequence[str]) -> bool:
    """Whether all of these are ids of runs: tens of thousands are looked at at once."""
    lines = "\n".join([*names, ""])
    return lines.count("\n") == len(names) and _RUNS.fullmatch(lines) is not None


_RUNS = re.compile(r"(?:[0-9]{7}-[A-Za-z0-9._=+,@-]{0,192}\n)*")  # letters as `is_part` has them


def is_entry_number(name: str) -> bool:
    """Whether the end of a log entry's name is its number, written as `number` does."""
    text = name[:-5]
    return (
        6 <= len(text) <= DIGITS
        and text.isdecimal()
        and text.isascii()
        and name[-5:] == ".json"
        and (len(text) == 6 or text[0] != "0")
    )


def split_log_entry(key: str) -> tuple[str, int]:
    """(run, k) of a key under log/ or ends/."""
    run, _, k = key.rsplit("/", 1)[1].removesuffix(".json").rpartition("-")
    return run, int(k)


def run_of_log_entry(key: str) -> str:
    return key[key.rindex("/") + 1 : key.rindex("-")]


def ends(name: str) -> str:
    return f"{sweep(name)}ends/"


def end(name: str, run: str, k: int) -> str:
    """Copy of the end that is entry k; the number tells a reader from names alone whether it still stands."""
    return f"{ends(name)}{run}-{number(k)}.json"


def tags(name: str) -> str:
    return f"{sweep(name)}tags/"


def tag(name: str, n: int) -> str:
    return f"{tags(name)}{number(n)}.json"


def halts(name: str) -> str:
    """Odd entries halt the sweep (its claims stop), even ones lift it."""
    return f"{sweep(name)}halts/"


def halt(name: str, n: int) -> str:
    return f"{halts(name)}{number(n)}.json"


def learned_forms(name: str) -> str:
    """Forms of options that a usage error showed."""
    return f"{sweep(name)}forms/"


def learned_form(name: str, n: int) -> str:
    return f"{learned_forms(name)}{number(n)}.json"


def outgrown_gpus(name: str) -> str:
    """Sizes of GPUs that were too small for runs of this sweep."""
    return f"{sweep(name)}outgrown/"


def outgrown_gpu(name: str, n: int) -> str:
    return f"{outgrown_gpus(name)}{number(n)}.json"


def measured_rates(name: str) -> str:
    """Rates at which fleets train this sweep, as scouts measured them."""
    return f"{sweep(name)}rates/"


def measured_rate(name: str, fleet: str) -> str:
    return f"{measured_rates(name)}{check_part(fleet)}.json"


def targets(name: str) -> str:
    """Moments by which a sweep is to be done; the newest counts."""
    return f"{sweep(name)}target/"


def target(name: str, n: int) -> str:
    return f"{targets(name)}{number(n)}.json"


def target_look(name: str, n: int, ended: int) -> str:
    """A target looked at after so many ends: who creates it decides."""
    return f"{targets(name)}{number(n)}/{number(ended)}.json"


def began(name: str) -> str:
    """Its time of writing is when the first run of a sweep with a budget of hours was taken."""
    return f"{sweep(name)}began.json"


def turns(name: str) -> str:
    """Runs that have a turn, in a sweep that allows only so many at once."""
    return f"{sweep(name)}turns/"


def turn(name: str, place: int, n: int) -> str:
    """The newest entry of a place names the attempt that has it; the place is free once that is over."""
    return f"{turns(name)}{place:05d}-{number(n)}.json"


def split_turn(key: str) -> tuple[int, int] | None:
    """(place, n) of a key under turns/; None of a stray one."""
    place, _, n = key.rsplit("/", 1)[1].removesuffix(".json").partition("-")
    found = numbers(place, n)
    return (found[0], found[1]) if found else None


def trash(name: str) -> str:
    """Odd entries of a run put it in the trash, even ones take it out."""
    return f"{sweep(name)}trash/"


def trash_entry(name: str, run: str, n: int) -> str:
    return f"{trash(name)}{run}-{number(n)}.json"


def journal(name: str) -> str:
    """Entries of a search that learns."""
    return f"{sweep(name)}journal/"


def journal_entry(name: str, n: int) -> str:
    return f"{journal(name)}{number(n)}.json"


def rungs(name: str) -> str:
    """Values of runs at the steps where they are compared."""
    return f"{sweep(name)}rungs/"


def level(name: str, step: int) -> str:
    return f"{rungs(name)}{step:012d}/"


def rung(name: str, step: int, run: str) -> str:
    return f"{level(name, step)}{run}.json"


def split_rung(key: str) -> tuple[int, str] | None:
    """(level, run) of a key under rungs/; None of a stray one."""
    level, run = key.rsplit("/", 2)[1:]
    found, run = numbers(level), run.removesuffix(".json")
    return (found[0], run) if found and is_run(run) else None


def over(name: str, entries: int) -> str:
    """All runs had ended when their logs had so many entries: who creates it packs what is left."""
    return f"{sweep(name)}over/{entries:09d}.json"


def segments(name: str) -> str:
    """Ended runs of a sweep, many in one object."""
    return f"{sweep(name)}segments/"


def segment(name: str, n: int) -> str:
    return f"{segments(name)}{number(n)}"


def seals(name: str) -> str:
    """Seals of packed runs; the newest counts."""
    return f"{sweep(name)}sealed/"


def seal(name: str, n: int) -> str:
    return f"{seals(name)}{number(n)}"


def packs(name: str) -> str:
    return f"{sweep(name)}packs/"


def pack(name: str, own: str) -> str:
    """Objects of ended runs, many in one; a seal says which."""
    return f"{packs(name)}{own}"


PACKED_SPEC = 999_999


def packed_spec(name: str) -> str:
    """No version of a spec, but a record that an older hostler refuses."""
    return spec(name, PACKED_SPEC)


def alive(session: str) -> str:
    return f"{ALIVE}{check_part(session)}.json"


def interest() -> str:
    """Written by who looks at the store, so that workers send metrics more often."""
    return "interest.json"


def session_of(key: str) -> str:
    return key.removeprefix(ALIVE).removesuffix(".json")


def run(run_id: str) -> str:
    return f"{RUNS}{check_part(run_id)}/"


def inputs(run_id: str) -> str:
    """Inputs that a run takes from other runs, as its first attempt found them."""
    return f"{run(run_id)}inputs.json"


def metrics(run_id: str) -> str:
    return f"{run(run_id)}metrics/"


def metric_fragment(run_id: str, attempt: int, rank: int, seq: int) -> str:
    return f"{metrics(run_id)}{_fragment(attempt, rank, seq)}"


def logs(run_id: str) -> str:
    return f"{run(run_id)}logs/"


def log_fragment(run_id: str, attempt: int, rank: int, seq: int) -> str:
    return f"{logs(run_id)}{_fragment(attempt, rank, seq)}"


def split_fragment(key: str) -> tuple[int, int, int] | None:
    """(attempt, rank, seq) of a metric or log fragment; None of a stray name."""
    found = numbers(*key.rsplit("/", 1)[1].split("-"))
    return (found[0], found[1], found[2]) if found and len(found) == 3 else None


def _fragment(attempt: int, rank: int, seq: int) -> str:
    return f"{number(attempt)}-{rank:04d}-{seq:08d}"


def gang(run_id: str, attempt: int) -> str:
    """The workers that carry one attempt out together."""
    return f"{run(run_id)}gang/{number(attempt)}/"


def gang_member(run_id: str, attempt: int, slot: int, what: str = "") -> str:
    """A member of a gang, 0 the leader; or a later note of it."""
    return f"{gang(run_id, attempt)}{slot:04d}{f'-{what}' if what else ''}.json"


def gang_go(run_id: str, attempt: int) -> str:
    """They are complete: who has which rank, and where they meet."""
    return f"{gang(run_id, attempt)}go.json"


def split_gang(key: str) -> tuple[int, str]:
    """(slot, what) of a key under gang/; (-1, "go") of the go."""
    slot, _, what = key.rsplit("/", 1)[1].removesuffix(".json").partition("-")
    found = numbers(slot)
    return (found[0], what) if found else (-1, slot)


def checkpoints(run_id: str) -> str:
    return f"{run(run_id)}checkpoints/"


def checkpoint(run_id: str, attempt: int, step: int) -> str:
    return f"{checkpoints(run_id)}{number(attempt)}-{step:012d}/"


def commit(run_id: str, attempt: int, step: int) -> str:
    return f"{checkpoint(run_id, attempt, step)}COMMIT"


def checkpoint_mark(run_id: str, attempt: int, step: int) -> str:
    """Mark of a person that a checkpoint stays: a copy of its COMMIT."""
    return f"{checkpoint(run_id, attempt, step)}KEEP"


def checkpoint_file(run_id: str, attempt: int, step: int, n: int) -> str:
    """Files are numbered, and COMMIT holds their names: a user's file name is never part of a key."""
    return f"{checkpoint(run_id, attempt, step)}files/{number(n)}"


def checkpoint_parts(run_id: str, attempt: int, step: int) -> str:
    return f"{checkpoint(run_id, attempt, step)}parts/"


def checkpoint_part(run_id: str, attempt: int, step: int, node: int) -> str:
    """The files that one node of a gang has brought: COMMIT comes when all have."""
    return f"{checkpoint_parts(run_id, attempt, step)}{node:04d}.json"


def split_part(key: str) -> int | None:
    """The node of a key under parts/; None of a stray one."""
    found = numbers(key.rsplit("/", 1)[1].removesuffix(".json"))
    return found[0] if found else None


def split_checkpoint(key: str) -> tuple[int, int] | None:
    """(attempt, step) of any key under checkpoints/; None of a stray one."""
    attempt, _, step = key.split("/checkpoints/", 1)[1].split("/", 1)[0].partition("-")
    found = numbers(attempt, step)
    return (found[0], found[1]) if found else None


def outputs(run_id: str, attempt: int) -> str:
    """Files the run left in its output folder and under `outputs:`; COMMIT last, like a checkpoint."""
    return f"{run(run_id)}outputs/{number(attempt)}/"


def all_outputs(run_id: str) -> str:
    """The prefix of the outputs of all attempts."""
    return f"{run(run_id)}outputs/"


def split_output(key: str) -> int | None:
    """The attempt of any key under outputs/; None of a stray one."""
    found = numbers(key.split("/outputs/", 1)[1].split("/", 1)[0])
    return found[0] if found else None


def output_file(run_id: str, attempt: int, n: int) -> str:
    return f"{outputs(run_id, attempt)}files/{number(n)}"


def output_commit(run_id: str, attempt: int) -> str:
    return f"{outputs(run_id, attempt)}COMMIT"


def trackers(run_id: str) -> str:
    """Records and files of tracking tools about a run."""
    return f"{run(run_id)}trackers/"


def tracked(run_id: str, attempt: int, kind: str) -> str:
    """How a tool does with an attempt."""
    return f"{trackers(run_id)}{number(attempt)}/{kind}.json"


def tracker_files(run_id: str, attempt: int, kind: str) -> str:
    return f"{trackers(run_id)}{number(attempt)}/{kind}/"


def tracker_file(run_id: str, attempt: int, kind: str, name: str) -> str:
    return f"{tracker_files(run_id, attempt, kind)}{name}"


def split_tracked(key: str) -> tuple[int, str] | None:
    """(attempt, tool) of a tool's record; None for its files, and of a stray name."""
    n, _, rest = key.partition("/trackers/")[2].partition("/")
    found = numbers(n)
    return (found[0], rest.removesuffix(".json")) if found and "/" not in rest else None


def split_tracker_file(key: str) -> tuple[int, str, str] | None:
    """(attempt, tool, name) of a tool's file; None for its record, and of a stray name."""
    n, _, rest = key.partition("/trackers/")[2].partition("/")
    kind, _, name = rest.partition("/")
    found = numbers(n)
    return (found[0], kind, name) if found and name else None


def environment(run_id: str, attempt: int) -> str:
    """Packages, Python, driver, GPU, host and command line of one attempt that lasted."""
    return f"{run(run_id)}env/{number(attempt)}.json"


def surroundings(name: str) -> str:
    """Surroundings that short attempts share; named by content."""
    return f"surroundings/{check_part(name)}.json"


ARCHIVE = "archive/"


def archived(run_id: str) -> str:
    """A run in the archive: copies of its files and curves, COMMIT last."""
    return f"{ARCHIVE}{check_part(run_id)}/"


def archived_file(run_id: str, n: int) -> str:
    return f"{archived(run_id)}files/{number(n)}"


def archived_curves(run_id: str) -> str:
    """Its end, parameters and whole curves, as a segment of one."""
    return f"{archived(run_id)}curves"


def archived_commit(run_id: str) -> str:
    return f"{archived(run_id)}COMMIT"


def archive_terms() -> str:
    return f"{ARCHIVE}terms/"


def archive_term(version: int) -> str:
    """How many are kept, and by what they are ranked."""
    return f"{archive_terms()}{number(version)}.json"


def entered() -> str:
    """Every run that was ever in the archive: the trend outlives its models."""
    return f"{ARCHIVE}entered/"


def entered_run(run_id: str, k: int) -> str:
    return f"{entered()}{check_part(run_id)}-{number(k)}.json"


NOTICES = "notices/"


def notice(n: int) -> str:
    """A message that people got, or get with the next one."""
    return f"{NOTICES}{number(n)}.json"


def clock_probe() -> str:
    """An object written only to learn the store's time; deleted at once."""
    return f"probe/{os.urandom(8).hex()}"
