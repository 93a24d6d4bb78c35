"""The words of `resume:` that fit a restored checkpoint. Pure.

Words that name a path under the checkpoint folder fit if that path was restored: a script that is told to
resume from a missing file fails each time, and its run would be lost. Of several alternatives the first that
fits is used; if none does, the attempt starts from the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hostler.spec.job import Job

Words = tuple[str, ...]
_ARGUMENT = re.compile(r"-|\{|[\w.+-]+=")


def is_whole_command(words: Sequence[str]) -> bool:
    """Whether words of `resume` stand in place of the command, instead of being added to it.

    They are added if they begin like an argument: with a dash, a placeholder, or as key=value.
    """
    return bool(words) and not _ARGUMENT.match(words[0])


def alternatives(job: Job) -> Iterator[Job]:
    """The job with each of its alternatives as its only `resume`."""
    yield replace(job, resume_else=())
    for words in job.resume_else:
        yield replace(job, resume=words, resume_whole=is_whole_command(words), resume_else=())


def fitting(
    job: Job, fill: Callable[[Words], Sequence[str]], folder: str, exists: Callable[[str], bool]
) -> Job | None:
    """The job with the first `resume` whose paths under the checkpoint folder exist; None if none fits.
    `fill` replaces placeholders; a job without `resume` fits."""
    for chosen in alternatives(job):
        if not missing(fill(chosen.resume), folder, exists):
            return chosen
    return None


def missing(words: Sequence[str], folder: str, exists: Callable[[str], bool]) -> list[str]:
    """Paths under the folder that words name, and that do not exist."""
    found = []
    for word in words:
        for at in (match.start() for match in re.finditer(re.escape(folder), word)):
            named = word[at:].rstrip("'\"")
            short = re.split(r"[\s'\",;:]", word[at + len(folder) :])[0]
            if not exists(named) and not exists(folder + short):
                found.append(named)
    return found
