from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostler.errors import UsageError
from hostler.spec.names import MAX, as_label, check_part, slug

anything = st.text(st.characters(), max_size=400)


@given(anything, st.integers(10, 200))
@example("", 48)
@example(".", 48)
@example("..", 48)
@example("-", 48)
@example("\ud800", 48)
@example("x" * 300, 48)
@example('it\'s "a"; echo x\n/../b', 48)
@example("日本語", 48)
@example("a" * 41 + "-b", 48)
def test_any_text_gets_a_safe_name_of_bounded_length(text: str, limit: int) -> None:
    name = slug(text, limit)
    assert check_part(name) == name
    assert len(name) <= limit
    assert slug(text, limit) == name
    assert name == name.lower()


@given(anything, anything)
@example("a b", "a-b")
@example("A", "a")
@example("x" * 300, "x" * 299)
@example("", " ")
def test_texts_that_differ_keep_different_names(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)


@given(st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,40}[a-z0-9])?", fullmatch=True).filter(lambda t: "--" not in t))
def test_a_name_that_is_safe_already_stays(text: str) -> None:
    assert slug(text) == text
    assert slug(slug(text)) == slug(text)


def test_the_default_limit_leaves_room() -> None:
    assert len(slug("y" * 300)) <= MAX


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "a b", "a\n", "x" * 201, "é"])
def test_unsafe_parts_are_refused(part: str) -> None:
    with pytest.raises(UsageError):
        check_part(part)


@given(anything, anything)
@example("gpu_a", "gpu-a")
@example("v1.2", "v1-2")
def test_texts_that_differ_keep_different_labels_that_clouds_take(one: str, other: str) -> None:
    assert (as_label(one) == as_label(other)) == (one == other)
    assert re.fullmatch(r"[a-z0-9-]{1,63}", as_label(one))
