"""The nearest known word to one that is unknown, as a hint."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known words that are near to it, the nearest first."""
    import difflib  # only a mistake needs it

    return difflib.get_close_matches(word, list(known), n=most, cutoff=0.6)


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean 'x'?`, or what is said otherwise if nothing is near."""
    near = nearest(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else otherwise
