"""Tells before a sweep is submitted which of its runs can be trained together.

Reads the config that the command names, as it is now; torch is not needed. What only the data or the model
tell (dropout, examples that are loaded one by one), the process finds out, and sends its runs back. What
knows a config is imported once a command is the trainer's: most sweeps are of other scripts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hostler.errors import HostlerError, SpecError
from hostler.frozen import dataclass
from hostler.spec import space, together
from hostler.spec.argv import build
from hostler.spec.inputs import inputs_of, with_paths
from hostler.spec.job import Job, Together
from hostler.spec.together import USUAL
from hostler.train import copied

if TYPE_CHECKING:
    from hostler.train.config import Config

STYLES = ("flags", "equals")  # by which parameters reach `hostler train`
MOST = 10_000  # runs that are looked at
VALUES = 200  # runs whose values are looked at
READ = 16  # of one shape, until one has a config that can be read
# Keys of which a value may keep a run from going with others.
DECIDING = ("loss", "optim_alg")


@dataclass(frozen=True)
class GroupOffer:
    """`said`: a line for people, '' where there is nothing to say."""

    together: Together = field(default_factory=Together)
    said: str = ""


def offered(job: Job, folder: Path, asked: int | None) -> tuple[Job, str]:
    """The job with what its trainer says of it; `folder`: where the project is. `asked`: how many may go
    together, by the file; None: as many as usual."""
    group_offer = offer(job, folder, asked)
    return replace(job, together=group_offer.together), group_offer.said


@dataclass(frozen=True)
class _Trainer:
    """The trainer that a job's command starts: hostler's, or a copy of it in the project."""

    folder: Path  # where the command runs
    copy: bool = False
    changed: tuple[str, ...] = ()  # files of the copy that are not hostler's any more

    @property
    def reads(self) -> bool:
        """Whether its configs can be read here: nothing of a user's is executed."""
        return not set(self.changed) & set(copied.CONFIG)

    @property
    def bypassed(self) -> str:
        """Why runs of a changed copy cannot share a process; '' if they can."""
        found = [path for path in copied.BYPASSED if path in self.changed]
        if not found:
            return ""
        verb = "differs" if len(found) == 1 else "differ"
        return f"{', '.join(found)} {verb} from hostler's, and runs that share a process pass it by"


def _trainer(job: Job, folder: Path) -> _Trainer:
    place = folder / job.cwd
    if _of_hostler(job.command) is not None:
        return _Trainer(place)
    at = _script(job.command)
    script = place / job.command[at] if at is not None else None
    if script is None or not copied.is_copy(script):
        return _Trainer(place)
    return _Trainer(place, True, tuple(copied.changed(script.parent)))


def offer(job: Job, folder: Path, asked: int | None) -> GroupOffer:
    trainer = _trainer(job, folder)
    strange = _stranger(job, trainer)
    if not strange and trainer.reads and job.search:
        _check_names(job)
    elif not strange and trainer.reads:
        _check(job, trainer)
    why = strange or _several(job) or trainer.bypassed
    if why:
        if asked is not None and asked > 1:
            raise SpecError(f"together: {asked}, but {why}", hint="leave it out")
        return GroupOffer(said=f"trained one by one: {why}" if why == trainer.bypassed else "")
    if asked is not None and asked < 2:
        return GroupOffer(said="trained one by one: together is off")
    from hostler.train.fused import alike

    found = Together(asked or USUAL, tuple(sorted(alike.VECTORS)))
    return _searched(job, trainer, found, asked) if job.search else _computed(job, trainer, found)


def _stranger(job: Job, trainer: _Trainer) -> str:
    """Why this is nothing that the trainer knows of; '' if it is its own."""
    if not trainer.copy and _of_hostler(job.command) is None:
        return "the command is not hostler train"
    if job.style not in STYLES:
        return f"style: {job.style} is not how hostler train gets its parameters"
    return ""


def _several(job: Job) -> str:
    return "a run takes several processes" if job.resources.nodes * job.resources.procs_per_node > 1 else ""


def _words(command: Sequence[str], trainer: _Trainer) -> tuple[str, ...]:
    """The words that a training reads."""
    at = _script(command)
    words = tuple(command[at + 1 :]) if trainer.copy and at is not None else _of_hostler(command)
    assert words is not None
    return words


def _script(command: Sequence[str]) -> int | None:
    """Place of the script that a Python in this command runs."""
    for at in range(1, len(command)):
        if command[at].endswith(".py") and os.path.basename(command[at - 1]).startswith("python"):
            return at
    return None


def _of_hostler(command: Sequence[str]) -> tuple[str, ...] | None:
    """Words after `hostler train` or `python -m hostler train`; None for any other command."""
    for at in range(len(command) - 1):
        plain = at == 0 or (at > 1 and command[at - 1] == "-m")
        if plain and os.path.basename(command[at]) == "hostler" and command[at + 1] == "train":
            return _of_config(command[at + 2 :])
    return None


def _of_config(words: Sequence[str]) -> tuple[str, ...]:
    """Without what `hostler train` reads itself."""
    rest, found = iter(words), list[str]()
    for word in rest:
        if word == "--":
            found.extend(rest)
        elif word == "--name":
            next(rest, None)
        elif not word.startswith("--name="):
            found.append(word)
    return tuple(found)


def _computed(job: Job, trainer: _Trainer, asked: Together) -> GroupOffer:
    """The offer for a sweep whose runs are known."""
    firsts: dict[str, list[int]] = {}
    counts: Counter[str] = Counter()
    for index in _few(job.indices()):
        key = together.key(job.command_of(index), job.params(index), asked.free)
        counts[key] += 1
        firsts.setdefault(key, []).extend([index] if counts[key] <= READ else [])
    why = {key: _obstacle(job, some, trainer) for key, some in firsts.items() if counts[key] > 1}
    apart = tuple(sorted(key for key, reason in why.items() if reason))
    found = replace(asked, apart=apart)
    groups = [counts[key] for key, reason in why.items() if not reason]
    if not groups:
        return GroupOffer(Together(), _one_by_one(job, len(firsts), list(filter(None, why.values()))))
    return GroupOffer(found, _said(job, asked, groups, sum(counts.values()), why))


def _searched(job: Job, trainer: _Trainer, asked: Together, given: int | None) -> GroupOffer:
    """The offer for a search: its runs are chosen as it goes, and it learns from each of them."""
    if given is None:
        return GroupOffer(said=f"trained one by one: {LEARNS}")
    deciding = sorted(set(space.from_json(job.search).keys) & set(DECIDING))
    if deciding:
        return GroupOffer(said=f"trained one by one: the search sets {', '.join(deciding)}")
    try:
        why = _why_apart(job, _config(job, None, trainer)) if trainer.reads else ""
    except (HostlerError, OSError) as error:
        why = str(error)
    if why:
        return GroupOffer(said=f"trained one by one: {why}")
    text = f"trained together on one device: {given} configurations are asked for at a time{_OFF}"
    return GroupOffer(replace(asked, asked=True), text)


LEARNS = "a search learns from each run; together: 8 asks for eight at a time"
_OFF = "; together: false trains them one by one"


def _said(job: Job, asked: Together, groups: list[int], runs: int, why: Mapping[str, str]) -> str:
    several = f" in {len(groups)} groups" if len(groups) > 1 else ""
    free = [name for name in _varied(job) if name in asked.free]
    differ = f" (they differ in {', '.join(free)})" if free else ""
    first = "the first " if job.count > MOST else ""
    text = f"trained together on one device: {sum(groups)} of {first}{runs} runs{several}"
    text += f", up to {asked.limit} at once{differ}{_OFF}"
    shapes = [name for name in _varied(job) if name not in asked.free]
    if len(groups) > 1 and shapes:
        text += f"; {_changes(shapes)}"
    reasons = sorted(set(filter(None, why.values())))
    return text + (f"; one by one: {'; '.join(reasons)}" if reasons else "")


def _one_by_one(job: Job, keys: int, reasons: list[str]) -> str:
    if reasons:
        return f"trained one by one: {'; '.join(sorted(set(reasons)))}"
    from hostler.train.fused import alike

    shapes = [name for name in _varied(job) if name not in alike.VECTORS]
    return f"trained one by one: {_changes(shapes)}" if keys > 1 and shapes else ""


def _changes(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'changes' if len(names) == 1 else 'change'} shapes, data or steps"


def _varied(job: Job) -> list[str]:
    """Parameters that are not the same in all of its runs."""
    seen: dict[str, set[str]] = {}
    for index in _few(job.indices()):
        for name, value in job.params(index).items():
            seen.setdefault(name, set()).add(repr(value))
    return [name for name, values in seen.items() if len(values) > 1]


def _few(indices: Iterator[int]) -> Iterator[int]:
    return (index for _, index in zip(range(MOST), indices, strict=False))


def _obstacle(job: Job, indices: Sequence[int], trainer: _Trainer) -> str:
    """The obstacle of the first readable config: these runs differ only in numbers. Where a user has changed
    what a config is, the process finds out."""
    if not trainer.reads:
        return ""
    why = ""
    for index in indices:
        try:
            return _why_apart(job, _config(job, index, trainer))
        except (HostlerError, OSError) as error:
            why = str(error)
    return why


def _why_apart(job: Job, config: Config) -> str:
    """The reason why a run cannot share a process; '' if it can. A group trains on one device."""
    from hostler.train.fused import alike

    gpus = job.resources.gpus
    several = f"multi_gpu: each trains on {gpus:g} GPUs" if config.multi_gpu and gpus > 1 else ""
    return several or alike.obstacle(config)


def _check(job: Job, trainer: _Trainer) -> None:
    """SpecError's one line if a run has a value that cannot be: of each value the first run that has it is
    looked at. A config that is not here may be there."""
    firsts: dict[tuple[str, str], int] = {}
    for index in _few(job.indices()):
        for name, value in job.params(index).items():
            firsts.setdefault((name, repr(value)), index)
    for index in sorted(set(firsts.values()))[:VALUES]:
        try:
            _config(job, index, trainer)
        except SpecError as error:
            if error.where:
                raise
            raise SpecError(f"run {index}: {error.message}", error.hint) from None
        except (HostlerError, OSError):
            continue


def _check_names(job: Job) -> None:
    """SpecError's one line if a search would set an unknown key. Of values it says nothing: which of them go
    together is not known yet."""
    from hostler.train import configfile

    words = " ".join(job.command)
    for name in space.from_json(job.search).keys:
        if not any(f"{{{taken}}}" in words for taken in (name, name.partition(".")[0])):
            configfile.check_name(name)


def _config(job: Job, index: int | None, trainer: _Trainer) -> Config:
    """As the process will read it, but for where things of other runs will lie; without an index, without
    what a search would choose."""
    from hostler.train import configfile

    if index is not None:
        job = replace(job, command=job.command_of(index))
    params = {} if index is None else job.params(index)
    params = with_paths(params, {one.key: one.shown for one in inputs_of(params)})
    words = _words(build(job, params, {}, False).argv, trainer)
    return configfile.from_words((*words, *configfile.restated(words, params)), trainer.folder)
