from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostler import env
from hostler.errors import MissingError, UsageError
from hostler.fleet.snapshot import gitref

pytestmark = pytest.mark.needs("git")


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    return subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "re po"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    git(folder, "tag", "-a", "v1", "-m", "v1")
    git(folder, "commit", "-q", "--allow-empty", "-m", "two")
    git(folder, "branch", "feature/x")
    return folder


@pytest.mark.parametrize(
    ("text", "url", "ref"),
    [
        ("https://host/me/x.git@v1", "https://host/me/x.git", "v1"),
        ("https://host/me/x@feature/y", "https://host/me/x", "feature/y"),
        ("https://user@host/me/x", "https://user@host/me/x", "HEAD"),
        ("git@host:me/x.git", "git@host:me/x.git", "HEAD"),
        ("git@host:me/x.git@main", "git@host:me/x.git", "main"),
        ("ssh://git@host/x", "ssh://git@host/x", "HEAD"),
        ("ssh://git@host/x@main", "ssh://git@host/x", "main"),
        ("/srv/x@main", "/srv/x", "main"),
    ],
)
def test_url_and_ref_are_told_apart(text: str, url: str, ref: str) -> None:
    assert gitref.split(text) == (url, ref)


@pytest.mark.parametrize(
    "text", ["https://me:pw@host/x", "https://me:pw@host/x@main", "-x/y@main", "/x@-y", "/x@"]
)
def test_passwords_and_options_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        gitref.split(text)


@pytest.mark.parametrize("token", ["ghp_abcdefghijklmnopqrstuvwx", "0123456789abcdef0123456789abcdef"])
def test_token_as_git_user_is_refused_and_hidden(token: str) -> None:
    with pytest.raises(UsageError, match="git_token: GIT_TOKEN") as error:
        gitref.split(f"https://{token}@host/me/x@main")
    assert token not in str(error.value)


def test_branches_tags_and_commits_are_pinned(repo: Path) -> None:
    head = git(repo, "rev-parse", "HEAD")
    assert gitref.resolve(str(repo), "main") == head
    assert gitref.resolve(str(repo), "feature/x") == head
    assert gitref.resolve(str(repo), "HEAD") == head
    assert gitref.resolve(str(repo), "v1") == git(repo, "rev-parse", "v1^{commit}")
    assert gitref.resolve("/nowhere", head) == head
    assert gitref.source(f"{repo}@v1").ref == git(repo, "rev-parse", "v1^{commit}")


def test_an_unknown_ref_or_repository_is_one_clear_line(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no branch or tag 'nope'"):
        gitref.resolve(str(repo), "nope")
    with pytest.raises(MissingError, match=r"cannot read .*: fatal: "):
        gitref.resolve(str(tmp_path / "none"), "main")


def test_an_unset_token_is_named_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_TOKEN", raising=False)
    with pytest.raises(UsageError, match="MY_TOKEN"):
        gitref.source("https://127.0.0.1:1/x@main", "MY_TOKEN")


def test_a_token_is_in_the_environment_for_its_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    found = env.for_git("https://host/me/x", "s3cret")
    assert found["GIT_CONFIG_COUNT"] == "2"
    assert found["GIT_CONFIG_KEY_1"] == "http.https://host/.extraHeader"
    assert "GIT_CONFIG_KEY_1" not in env.for_git("git@host:x", "s3cret")
