from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hostler.store.bucket import offset_for, past, server_folder

words = st.text(alphabet="+,-./09=@AZ_az", max_size=6)


@given(words, words, words)
def test_no_wanted_key_is_skipped(prefix: str, after: str, key: str) -> None:
    for wanted in (key, prefix + key):
        if wanted.startswith(prefix) and wanted > after:
            assert wanted > offset_for(prefix, after)
            assert wanted.startswith((server_folder(prefix) + "/") if server_folder(prefix) else "")
            assert not past(wanted, prefix)


@given(words, words)
def test_what_comes_later_than_past_is_past_too(prefix: str, key: str) -> None:
    if past(key, prefix):
        assert key > prefix and not key.startswith(prefix)


def test_listing_begins_right_before_the_prefix() -> None:
    assert "log/0023-5" < offset_for("log/0024", "") < "log/0024"
    assert offset_for("log/", "log/0024") == "log/0024"
    assert offset_for("log/", "") == ""
    assert offset_for("", "a/~") == "a"
