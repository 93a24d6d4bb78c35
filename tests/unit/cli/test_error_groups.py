from __future__ import annotations

from hostler.cli.look.errors import Failed, groups
from hostler.cli.look.status import _failures
from hostler.records.rows import Row
from hostler.records.sweep.error_groups import advice, retry_command


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


def test_group_has_the_command_that_tries_its_failed_runs_again() -> None:
    (group,) = groups([failed("a", "x", "m"), failed("a", "x", "m"), failed("s/1", "x", "m")])
    assert group.retry == "hostler retry a s/1"
    waiting = Failed("a", "queued", 1, "h", "x", {"kind": "error", "message": "m"})
    assert groups([waiting])[0].retry == ""
    assert retry_command(f"s/{n}" for n in range(9)) == "hostler retry s"


def test_advice_names_the_run_in_each_of_its_commands() -> None:
    assert advice({"advice": "fix it, then hostler retry RUN"}, "a\\1") == "fix it, then hostler retry a\\1"
    assert advice({"advice": "hostler retry --fresh RUN starts"}, "s/1") == "hostler retry --fresh s/1 starts"


def test_status_shows_each_error_once_and_few_of_them() -> None:
    def row(n: int, message: str, state: str = "failed") -> Row:
        return Row(f"id{n}", f"s/{n}", "s", n, state, {}, failure={"kind": "error", "message": message})

    assert _failures([row(0, "x", "queued")]) == []
    assert _failures([row(0, "x"), row(1, "x")]) == [
        "s/0 and 1 more failed: x",
        "→ after a repair: hostler retry s/0 s/1",
    ]
    many = _failures([row(n, f"error {n}") for n in range(5)])
    assert many[3:] == ["2 more: hostler errors", "→ after a repair: hostler retry s"]
