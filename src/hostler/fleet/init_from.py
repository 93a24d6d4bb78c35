"""`--init-from`: the run, best of a sweep, path or URL from which runs begin."""

from __future__ import annotations

import os
from dataclasses import replace

from hostler.errors import UsageError
from hostler.records.run import resolve, upstream
from hostler.records.sweep import sweeps
from hostler.spec.files import hub_address
from hostler.spec.inputs import INIT
from hostler.spec.job import Job
from hostler.spec.project import DataEntry, Project
from hostler.spec.reference import BEST, RUN, STEP
from hostler.store import Store


def begin_from(word: str, job: Job, project: Project, store: Store) -> tuple[Job, Project]:
    """The job, and the project with the path or URL among its data. A sweep of several means its best run; a
    step after the name (`RUN@150000`) one of its checkpoints."""
    if INIT in project.data:
        raise UsageError(f"--init-from needs the data name {INIT!r}, which is taken", "rename that data")
    if "://" in word:
        if word.startswith(hub_address.SCHEME):
            _check_hub(word)
        return _with_data(job, project, DataEntry(INIT, url=word))
    if os.path.exists(word):  # relative to the project: so it is brought along
        return _with_data(job, project, DataEntry(INIT, path=os.path.relpath(word, project.root)))
    word, step = resolve.with_step(store, word)
    name = resolve.sweep(store, word)
    several = "/" not in word and word[:7] != "0" * 7 and sweeps.load(store, name).count != 1
    named = {BEST: name} if several else {RUN: resolve.run(store, word).run}
    begun = replace(job, init=named if step is None else {**named, STEP: str(step)})
    upstream.check(store, begun)
    return begun, project


def _check_hub(word: str) -> None:
    try:
        hub_address.parse(word)
    except ValueError as error:
        raise UsageError(f"--init-from: {error}", hint=hub_address.HINT) from None


def _with_data(job: Job, project: Project, entry: DataEntry) -> tuple[Job, Project]:
    where = {"url": entry.url or ""} if entry.url else {"path": entry.path or ""}
    return replace(job, init=where), replace(project, data={**project.data, INIT: entry})
