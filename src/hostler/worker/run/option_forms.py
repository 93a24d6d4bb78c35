"""Forms of options that the sweep learned from a usage error: taken at the start, written after one.

Only parameters whose form nobody could read from the source are looked at; all others cost nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hostler.records.sweep import learned_forms
from hostler.spec.job import Job
from hostler.spec.params import flatten
from hostler.spec.parsers.usage_errors import open_keys, other_forms
from hostler.spec.style import words
from hostler.store import Store
from hostler.worker.run.local_attempt import LocalAttempt


def learned(store: Store, job: Job, params: Mapping[str, Any]) -> tuple[Job, frozenset[str]]:
    """The job with the forms that its sweep has learned, and the keys of these."""
    if job.style != "flags" or not open_keys(params, job.forms):
        return job, frozenset()
    forms = learned_forms.read(store, job.name, job.source.mark)
    return (replace(job, forms=job.forms.given(forms)) if forms else job), frozenset(forms)


def learn(local: LocalAttempt, printed: str) -> bool:
    """After a usage error: write the other form for the sweep; whether the attempt is worth repeating."""
    job = local.job
    if job.style != "flags":
        return False
    asked = other_forms(printed, local.params, job.forms)
    repeated = [key for key, form in asked.items() if form.lists == "repeat"]
    if repeated and not _may_repeat(local):
        key = repeated[0]
        local.uploader.note(
            f"the script takes one word for {key}: say how it reads a list in it, as in "
            f"style: {{keys: {{{key}: {{lists: comma}}}}}}"
        )
        return False
    forms = {key: form.over(job.forms.of(key)) for key, form in asked.items()}
    if not learned_forms.learn(local.machine.store, job.name, job.source.mark, forms, local.learned):
        return False
    values = flatten(local.params)
    for key, form in forms.items():
        refused = " ".join(words(key, values[key], job.forms.of(key)))
        now = " ".join(words(key, values[key], form)) or f"{key} left out"
        local.uploader.note(f"the script refused {refused}: it is tried again with {now}")
    return True


def _may_repeat(local: LocalAttempt) -> bool:
    from hostler.spec.parsers.declarations import may_repeat  # it reads source, which few attempts need

    return may_repeat(local.job.command, local.folder.work / local.job.cwd)
