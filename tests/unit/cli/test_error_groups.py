from __future__ import annotations

from hostler.cli.look.errors import Failed, groups


def failed(run: str, signature: str, message: str, kind: str = "error", host: str = "h") -> Failed:
    failure = {"kind": kind, "message": message, "advice": "read: hostler logs RUN", "traceback": "T"}
    return Failed(run, "failed", 1, host, signature, failure)


def test_the_same_error_with_other_numbers_is_one_group() -> None:
    alike = [
        failed("a", "x", "bad lr 0.1"),
        failed("b", "x", "bad lr 0.2", host="k"),
        failed("a", "x", "bad"),
    ]
    (group,) = groups(alike)
    assert (group.count, group.runs, group.hosts) == (3, ("a", "b"), {"h": 2, "k": 1})
    assert group.message == "bad" and group.advice == "read: hostler logs a"


def test_the_most_frequent_comes_first_and_kinds_never_mix() -> None:
    found = groups([failed("a", "x", "m"), failed("b", "x", "m", "memory"), failed("c", "x", "m", "memory")])
    assert [(group.kind, group.count) for group in found] == [("memory", 2), ("error", 1)]


def test_errors_without_a_signature_are_told_apart_by_their_words() -> None:
    assert len(groups([failed("a", "", "one"), failed("b", "", "two"), failed("c", "", "one")])) == 2
