"""The way into a Google project: which project is meant."""

from __future__ import annotations

from pathlib import Path

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


def test_missing_credentials_come_with_how_to_get_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOSTLER_GCE_ENDPOINT")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    for name, value in {
        "NO_GCE_CHECK": "true",
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CloudError, match="Google credentials were not found") as refused:
        client_of(Fleet("burst", "gce", options={"project": "mine"}))
    assert "application-default login" in refused.value.hint
