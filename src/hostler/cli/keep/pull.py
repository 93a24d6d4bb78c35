"""`hostler pull`: a run's checkpoint, outputs and code into a folder here.

Everything arrives beside its place first, checked; then it is put there file by file. Nothing that
is there is overwritten without asking, and nothing is written outside the folder. Large files are left
where they are unless they are asked for, and named.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import click

from hostler.analysis.live_folder import RESULTS, LiveFolder
from hostler.cli import here
from hostler.cli.look import wait
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.confined import leads_inside
from hostler.errors import DamagedError, MachineError, MissingError, NewerFormatError, UsageError
from hostler.fleet.snapshot.size_limit import in_bytes
from hostler.records import layout
from hostler.records.checkpoint import checkpoints, outputs, ranked_weights, selection
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.ranked_weights import RankedWeights
from hostler.records.checkpoint.restorer import row_of, rows_of
from hostler.records.checkpoint.selection import KeptCheckpoint
from hostler.records.checkpoint.tree import hash_file, scan
from hostler.records.rows import rows
from hostler.records.run import control, history, resolve, tracked, upstream
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec import units
from hostler.spec.folders import folder
from hostler.spec.job import Job
from hostler.spec.reference import STEP_HINT, Step, read_step
from hostler.spec.units import counted, show_number
from hostler.store import Store
from hostler.terminal import own
from hostler.worker.prepare.code import unpack_blob

NEWEST = 10**9  # over every attempt's number


def command(
    name: str,
    to: Path | None,
    step: str | None,
    checkpoint: bool,
    left: bool,
    code: bool,
    shown: bool,
    folders: str,
    most: str,
    everything: bool,
    follow: bool,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Bring a run's newest checkpoint and outputs into a folder here, or the checkpoint of a step."""
    store = here.open_here(store_url)
    if follow:
        return _follow(store, name, to, as_json)
    name, at = _step(store, name, step)
    checkpoint = checkpoint or at is not None
    asked = {"checkpoint": checkpoint, "outputs": left, "code": code, "trackers": shown}
    small = inf if everything else _size(most)
    limits = {"checkpoint": inf if checkpoint else small, "outputs": small, "code": inf, "trackers": inf}
    parts = {part: limits[part] for part, given in asked.items() if given}
    parts = parts or {part: limits[part] for part in ("checkpoint", "outputs")}
    job, index = resolve.find(store, name)
    suffix = "" if at is None else f"@{at}"
    if index is None and job.count != 1:
        place = to or Path(job.name + suffix)
        return _pull_all(store, job, place, folders, parts, at, yes=yes, as_json=as_json)
    key = RunKey(job.name, job.run_id(index or 0))
    target = to or Path((key.sweep if job.count == 1 else key.run) + suffix)
    return _pull(store, name, key, target, parts, at, fresh=to is None, yes=yes, as_json=as_json)


def _follow(store: Store, name: str, to: Path | None, quiet: bool) -> int:
    """Keep a folder of the sweep's runs up to date until all have ended."""
    job, _ = resolve.find(store, name)
    live = LiveFolder(store, job, to or Path(RESULTS), say=_say)
    if not quiet:
        click.echo(str(live.path))
    found, over = wait.wait(store, live.update, None, quiet=True, also=[job.name])
    return wait.exit_code(store, found, None, over, [job.name])


def _step(store: Store, name: str, option: str | None) -> tuple[str, Step | None]:
    """The run's name, and the step after it or of the option."""
    name, step = resolve.with_step(store, name)
    if option is None:
        return name, step
    if step is not None:
        raise UsageError(f"--step {option} and {name}@{step} cannot be combined", hint="leave one out")
    wanted = read_step(option)
    if wanted is None:
        raise UsageError(f"--step {option}: not a step of a run", hint=STEP_HINT)
    return name, wanted


def _pull_all(
    store: Store,
    job: Job,
    target: Path,
    style: str,
    parts: Mapping[str, float],
    step: Step | None,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """Every run that has left something, into a folder of its own."""
    date = time.strftime("%Y-%m-%d", time.localtime(sweeps.submitted(store, job.name)))
    code = 0
    for row in rows(store, [job.name], touched=True, say=_say):
        place = target / folder(job, row.index, style, date)
        try:
            code |= _pull(store, row.name, row.key, place, parts, step, fresh=True, yes=yes, as_json=as_json)
        except MissingError as error:
            _say(error.message)
        except (DamagedError, NewerFormatError) as error:
            _say(f"{row.name} is left out: {error}")
            code = 1
    return code


def _pull(
    store: Store,
    name: str,
    key: RunKey,
    target: Path,
    parts: Mapping[str, float],
    step: Step | None = None,
    *,
    fresh: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """`parts`: how large a file of each may be; `step`: of the checkpoint, if not the newest; `fresh`: the
    folder is our own idea."""
    key = upstream.original(store, key)
    ranked = ranked_weights.of_run(store, key) if step is None and "checkpoint" in parts else None
    asked = None if step is None else selection.choose(store, key, step)
    chosen = asked or (ranked.elsewhere if ranked else None)
    with _staging(target) as staging:
        with arriving_in(staging):
            fetched = {
                part: _chosen(store, key, chosen, staging / part, limit)
                if chosen and part == "checkpoint"
                else _FETCH[part](store, key, staging / part, limit)
                for part, limit in parts.items()
            }
        found, large = [part for part in fetched if fetched[part]], [p for p in fetched if fetched[p] is None]
        if "outputs" in parts:
            for line in history.unkept(RunLog(store, key).read_on().entries):
                _say(f"{name}: {line}")
        if not found:
            raise _nothing(name, parts, large)
        for part in set(parts) - {*found, *large}:
            click.echo(f"hostler: {name} has no {part} to bring", err=True)
        size, fresh = scan(staging).size, fresh and not target.exists()
        names = _put(staging, target, yes=yes)
        if fresh and names:
            (target / ".gitignore").write_text("*\n")  # no part of the next run's code
        elif names:
            _mark_made(target, names)
    if names is None:
        click.echo("hostler: nothing was written", err=True)
        return 1
    _report(target, found, names, size, asked, ranked, as_json)
    return 0


def _mark_made(target: Path, names: Iterable[str]) -> None:
    """Note files in a folder that the person chose, if this project would take them for code."""
    from hostler import made_files

    if not target.resolve().is_relative_to(here.project().root.resolve()):
        return  # to note a file is to read it once more

    for path in (target / name for name in names):
        if path.is_file() and not path.is_symlink():
            made_files.mark(path)


def _nothing(name: str, parts: Iterable[str], large: Sequence[str]) -> MissingError:
    if large:
        what = f"{name}: its {' and '.join(large)} hold only what is larger than --max"
        return MissingError(what, hint=f"hostler pull {name} --all")
    return MissingError(f"{name} has no {' and no '.join(parts)} to bring", hint=f"hostler show {name}")


def _size(text: str) -> float:
    try:
        return units.size(text)
    except ValueError as error:
        raise UsageError(f"--max {text}: {error}", hint="for example 20MB") from None


def _chosen(store: Store, key: RunKey, chosen: KeptCheckpoint, folder: Path, limit: float) -> bool | None:
    if limit < inf and _large(store, key, chosen.place, limit):
        return None
    checkpoints.restore(store, chosen.checkpoint, folder, chosen.folder)
    return True


def _checkpoint(store: Store, key: RunKey, folder: Path, limit: float) -> bool | None:
    state = control.state_of(store, key)
    newest = next((p for p in checkpoints.committed(store, key.run) if p.attempt > state.fresh_from), None)
    if limit < inf and newest and _large(store, key, newest, limit):
        return None
    restored = checkpoints.restore_newest(
        store, key.run, folder, after=state.fresh_from, before=NEWEST, say=_say
    )
    return restored is not None


def _say(line: str) -> None:
    click.echo(f"hostler: {line}", err=True)


def _large(store: Store, key: RunKey, place: Place, limit: float) -> bool:
    """Whether a checkpoint is too large; it is brought whole or not at all."""
    try:
        size = sum(row.size for row in rows_of(checkpoints.read(store, key.run, place).record.get("files")))
    except (DamagedError, NewerFormatError):
        return False  # said when it is restored
    if size > limit:
        _say(f"{key.run}: its checkpoint of {in_bytes(size)} is left there; --checkpoint brings it")
    return size > limit


def _outputs(store: Store, key: RunKey, folder: Path, limit: float) -> bool | None:
    found = outputs.newest(store, key.run)
    if found is None:
        return False
    rows = found[1]
    large = {row.name: row.size for row in map(row_of, rows) if row.size > limit}
    for name, size in large.items():
        _say(f"{key.run}: {name} of {in_bytes(size)} is left there; --all brings it")
    small = [row for row in rows if row_of(row).name not in large]
    outputs.fetch(store, key.run, small, folder)
    return True if small else None


def _code(store: Store, key: RunKey, folder: Path, limit: float) -> bool:
    state = control.state_of(store, key)
    source = sweeps.with_source(sweeps.load(store, key.sweep), state).source
    if source.git:
        click.echo(f"hostler: its code is {source.git} at {source.ref}", err=True)
    if not source.snapshot:
        return False
    folder.mkdir()
    unpack_blob(store, layout.code(source.snapshot), source.snapshot, folder, what="the code snapshot")
    return True


def _trackers(store: Store, key: RunKey, folder: Path, limit: float) -> bool:
    return bool(tracked.fetch(store, key.run, folder))


# Whether it was brought; None: it is there, and too large.
_FETCH: dict[str, Callable[[Store, RunKey, Path, float], bool | None]] = {
    "checkpoint": _checkpoint,
    "outputs": _outputs,
    "code": _code,
    "trackers": _trackers,
}


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """A folder beside the target, on the same disk."""
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".pull-", dir=target.absolute().parent))
    except OSError as error:
        raise MachineError(
            f"{target} cannot be written: {error.strerror}", hint="--to another folder"
        ) from error
    try:
        yield folder
    except OSError as error:
        raise MachineError(
            f"{error.filename or target}: {error.strerror}", hint="free disk space, or fix the rights"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put(staging: Path, target: Path, *, yes: bool) -> list[str] | None:
    """Move what arrived to its place; None if the person keeps what is there."""
    arrived = scan(staging).rows
    names, links = [row.name for row in arrived], [row.name for row in arrived if row.link]
    for name in names:
        _check_place(target, name)
    there = [name for name in names if _differs(staging / name, target / name)]
    if there and not ask(f"{_shown(target, there)} there already. Overwrite?", yes=yes):
        return None
    before = _leading_out(target, links)
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging / name, target / name)
    if _leading_out(target, links) - before:
        for name in links:
            (target / name).unlink()
        raise UsageError(
            f"links of the run would lead out of {target}, through others that are there: none was written",
            hint="--to another folder",
        )
    return names


def _leading_out(target: Path, links: list[str]) -> set[str]:
    """Links that lead out of the target, in the folders that these are put in: each stayed inside where it
    arrived, but one may go through another that an earlier pull has left."""
    folders = {target / name.partition("/")[0] for name in links}
    paths = (folder / row.name for folder in folders for row in scan(folder).rows if row.link)
    return {str(path) for path in paths if not leads_inside(str(target), str(path.absolute()))}


def _check_place(target: Path, name: str) -> None:
    place = target / name
    if not place.parent.resolve().is_relative_to(target.resolve()):
        raise UsageError(f"{place.parent} leads out of {target}", hint="--to another folder")
    if place.is_dir() and not place.is_symlink():
        raise UsageError(f"{place} is a folder here, but a file in the run", hint="--to another folder")


def _differs(new: Path, old: Path) -> bool:
    if not os.path.lexists(old):
        return False
    if new.is_symlink() or old.is_symlink():
        return not (new.is_symlink() and old.is_symlink() and os.readlink(new) == os.readlink(old))
    return old.stat().st_size != new.stat().st_size or hash_file(old) != hash_file(new)


def _shown(target: Path, there: list[str]) -> str:
    first = ", ".join(str(target / name) for name in there[:3])
    more = f" and {len(there) - 3} more" if len(there) > 3 else ""
    return f"{first}{more} {'is' if len(there) == 1 else 'are'} different"


def _report(
    target: Path,
    parts: list[str],
    names: list[str],
    size: int,
    chosen: KeptCheckpoint | None,
    ranked: RankedWeights | None,
    as_json: bool,
) -> None:
    brought = "checkpoint" in parts
    if as_json:
        at: dict[str, Any] = {"step": chosen.step, "value": chosen.value} if chosen else {}
        at |= {"weights": ranked.record} if ranked and brought else {}
        output.print_json({"folder": str(target), "parts": parts, "files": names, "size": size, **at})
        return
    if chosen:
        value = "" if chosen.value is None else f": the metric is {show_number(chosen.value)}"
        _say(f"checkpoint {chosen.place.name}, step {chosen.step}{value}")
        if chosen.inside:
            _say("the weights of that step are `manager.best_weights` of the checkpoint")
    elif ranked and brought and ranked.said:
        _say(ranked.said)
    for part in parts:
        n = sum(name.startswith(f"{part}/") for name in names)
        click.echo(f"{target / part}: {counted(n, 'file')}")
    click.echo(f"hostler: {in_bytes(size)}", err=True)


# A line that shows how much has arrived in a folder, once it takes longer than a moment.


MOMENT = 1.0  # seconds
QUIET_EVERY = 10  # moments between two lines where there is no terminal


@contextmanager
def arriving_in(folder: Path) -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(folder, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(folder: Path, done: threading.Event) -> None:
    terminal, n = sys.stderr.isatty(), 0
    while not done.wait(MOMENT):
        if terminal:
            click.echo(own(f"\r{in_bytes(scan(folder).size)} "), nl=False, err=True)
        elif n % QUIET_EVERY == 0:
            click.echo(f"hostler: {in_bytes(scan(folder).size)} so far", err=True)
        n += 1
    if terminal and n:
        click.echo("", err=True)
