"""Forms of answers: what is refused, and that a person's own names are not."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.backends import answer_form
from hostler.backends.answer_form import NAMED_BY_PEOPLE, table, whole
from hostler.backends.gce import client as gce
from hostler.backends.gce.names import last
from hostler.backends.kubernetes import client as kubernetes
from hostler.backends.kubernetes.names import labels_of

CLIENTS = [gce.FORMS, kubernetes.FORMS]


def test_field_of_another_form_is_refused_at_any_depth() -> None:
    forms = {"metadata": table, "size": whole}
    assert answer_form.fits({"items": [{"metadata": {"size": "3"}}], "size": None}, forms)
    assert not answer_form.fits({"items": [{"metadata": [3]}]}, forms)
    assert not answer_form.fits({"items": [{"metadata": {"size": "three"}}]}, forms)


@pytest.mark.parametrize("forms", CLIENTS, ids=["gce", "kubernetes"])
@pytest.mark.parametrize("named", sorted(NAMED_BY_PEOPLE - {"data"}))
def test_labels_may_be_called_like_fields(forms: dict[str, Any], named: str) -> None:
    assert answer_form.fits({"items": [{named: dict.fromkeys(forms, "ready")}]}, forms)


def test_job_whose_pods_are_not_counted_yet_is_read() -> None:
    status = {"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["6f0e"], "failed": []}}
    assert answer_form.fits({"kind": "Job", "status": status}, kubernetes.FORMS)
    assert not answer_form.fits({"status": {"succeeded": "many"}}, kubernetes.FORMS)


def test_values_of_labels_and_zones_are_texts() -> None:
    assert labels_of({"metadata": {"labels": {"hostler-fleet": ["a"]}}}) == {"hostler-fleet": "['a']"}
    assert last(None) == "" and last("projects/p/zones/z") == "z"
