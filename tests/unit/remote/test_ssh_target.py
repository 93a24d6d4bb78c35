from __future__ import annotations

import pytest

from hostler.errors import UsageError
from hostler.remote.target import SshTarget, parse, split_store


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("gpu1", SshTarget("gpu1")),
        ("me@gpu2:2222", SshTarget("gpu2", "me", 2222)),
        ("10.0.0.7:22", SshTarget("10.0.0.7", None, 22)),
        ("[fe80::1]", SshTarget("fe80::1")),
        ("me@[fe80::1]:2222", SshTarget("fe80::1", "me", 2222)),
        ("a@b.c@host", None),
        ("-oProxyCommand=x", None),
        ("-l@host", None),
        ("two words", None),
        ("host:0", None),
        ("host:99999", None),
        ("host:x", None),
        ("", None),
    ],
)
def test_a_host_is_read_as_people_write_it(text: str, target: SshTarget | None) -> None:
    if target is None:
        with pytest.raises(UsageError, match="is not a host"):
            parse(text)
    else:
        assert parse(text) == target
        assert parse(str(target)) == target


def test_what_the_text_does_not_say_is_the_fleets() -> None:
    found = parse("me@gpu1", user="you", port=2222, key="/keys/id", jump="door")
    assert found == SshTarget("gpu1", "me", 2222, "/keys/id", "door")
    assert found.options == ["-l", "me", "-p", "2222", "-i", "/keys/id", "-J", "door"]


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("ssh://n1/data/runs", "n1", "/data/runs"),
        ("ssh://me@n1:22/~/runs", "me@n1:22", "~/runs"),
        ("ssh://n1/my%20runs/%25", "n1", "/my runs/%"),
        ("ssh://n1/my runs/a'b", "n1", "/my runs/a'b"),
    ],
)
def test_a_store_is_a_host_and_a_path(url: str, host: str, path: str) -> None:
    target, found = split_store(url)
    assert (str(target), found) == (host, path)


@pytest.mark.parametrize("url", ["ssh://n1", "ssh://n1/", "ssh:///x", "ssh://n1/a%00b"])
def test_a_store_without_a_host_or_a_folder_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        split_store(url)
