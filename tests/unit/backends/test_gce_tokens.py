"""The way into a Google project: which project is meant."""

from __future__ import annotations

import pytest

from hostler.backends.gce.tokens import client_of
from hostler.errors import CloudError
from hostler.spec.project import Fleet


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_GCE_ENDPOINT", "http://127.0.0.1:1/compute/v1")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)


@pytest.mark.parametrize("project", ["my-project-123", "example.com:mine", "123456789012"])
def test_an_id_or_a_number_is_a_project(project: str) -> None:
    assert client_of(Fleet("burst", "gce", options={"project": project})).project == project


@pytest.mark.parametrize("project", ["My Project!", "über", "a/b", "my-project\n"])
def test_a_name_of_a_project_is_not_its_id(project: str) -> None:
    with pytest.raises(CloudError, match="is not the id of a Google Cloud project") as refused:
        client_of(Fleet("burst", "gce", options={"project": project}))
    assert "gcloud projects list" in refused.value.hint
