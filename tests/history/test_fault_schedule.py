"""Schedules of faults: the same from the same seed, and halved until nothing smaller fails."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import test_mixed_faults
from mixed import Mixer
from schedule import (
    BUCKET,
    FOLDER,
    KINDS,
    ROOT,
    chosen,
    command,
    one_of_each,
    repeatable,
    schedule,
    seed_of_commit,
    smallest,
)


@pytest.mark.parametrize("place", [FOLDER, BUCKET])
def test_schedule_of_a_seed_is_the_same_each_time(place: str) -> None:
    first = schedule(17, place, 10.0, 40)
    assert first == schedule(17, place, 10.0, 40) != schedule(18, place, 10.0, 40)
    assert list(first) == sorted(first, key=lambda deed: deed.at)
    assert all(0 <= deed.at <= 10 and 0.1 <= deed.amount <= 12 and 0 <= deed.pick < 1 for deed in first)


@pytest.mark.parametrize("place", [FOLDER, BUCKET])
def test_every_kind_of_fault_comes_up_in_some_seed(place: str) -> None:
    met = {deed.kind for seed in range(20) for deed in schedule(seed, place, 10.0, 20)}
    assert met == set(KINDS[place])


@pytest.mark.parametrize("place", [FOLDER, BUCKET])
def test_short_dose_has_every_kind_of_fault_once(place: str) -> None:
    for seed in range(10):
        assert sorted(deed.kind for deed in one_of_each(seed, place, 5.0)) == sorted(KINDS[place])
    assert one_of_each(3, place, 5.0) == one_of_each(3, place, 5.0) != one_of_each(4, place, 5.0)


def test_busy_servers_refuse_for_a_minute_in_a_long_dose() -> None:
    long = [
        deed.amount for seed in range(40) for deed in schedule(seed, BUCKET, 30.0, 60) if deed.kind == "busy"
    ]
    short = [
        deed.amount for seed in range(40) for deed in one_of_each(seed, BUCKET, 5.0) if deed.kind == "busy"
    ]
    assert 9.0 < max(long) <= 10.0 and max(short) <= 3.0  # leases, of six seconds each


@pytest.mark.parametrize("guilty", [0, 6, 19])
def test_one_guilty_deed_is_named_alone(guilty: int) -> None:
    assert smallest(20, lambda part: guilty in part) == range(guilty, guilty + 1)


def test_two_guilty_deeds_stay_together() -> None:
    tried: list[range] = []

    def fails(part: range) -> bool:
        tried.append(part)
        return 2 in part and 5 in part

    assert smallest(16, fails) == range(8)
    assert tried == [range(8), range(4), range(4, 8)]


def test_a_failure_that_does_not_repeat_stays_whole() -> None:
    assert smallest(10, lambda part: False) == range(10)


def test_command_to_type_leads_to_the_same_deeds() -> None:
    deeds = schedule(17, FOLDER, 10.0, 20)
    line = command("tests/history/test_mixed_faults.py", 17, range(4, 7))
    assert line == (
        "HOSTLER_SEED=17 HOSTLER_DEEDS=4:7 .venv/bin/python -m pytest tests/history/test_mixed_faults.py"
    )
    assert chosen(deeds, "4:7") == deeds[4:7] and chosen(deeds, None) == deeds


@pytest.mark.parametrize("guilty", [0, 6])
def test_failed_dose_ends_with_the_command_of_its_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, guilty: int
) -> None:
    for name in ("HOSTLER_SEED", "HOSTLER_DEEDS"):
        monkeypatch.delenv(name, raising=False)
    bad = schedule(17, FOLDER, 10.0, 20)[guilty]
    monkeypatch.setattr(
        test_mixed_faults, "suffer", lambda deeds, *_: ["one-end: lost"] if bad in deeds else []
    )
    given = {"runs": 1, "workers": 1, "seconds": 10.0, "count": 20, "test": "tests/a.py"}
    with pytest.raises(pytest.fail.Exception) as failure:
        test_mixed_faults.dose(tmp_path, FOLDER, 17, **given)
    part = f"HOSTLER_SEED=17 HOSTLER_DEEDS={guilty}:{guilty + 1} .venv/bin/python -m pytest tests/a.py"
    assert str(failure.value).splitlines() == ["one-end: lost", "", str(bad), f"again: {part}"]


def test_fault_that_nobody_met_fails_its_dose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deeds = one_of_each(17, FOLDER, 5.0)
    mixer = Mixer(SimpleNamespace(disk=None), None, runs=1, workers=1)  # type: ignore[arg-type]
    mixer.hits.update(set(KINDS[FOLDER]) - {"kill", "full"})
    assert mixer.missed(deeds) == ["kill"], "where no disk can be mounted, none is full"
    monkeypatch.setattr(test_mixed_faults, "suffer", lambda *_: ["nobody met: kill"])
    given = {"runs": 1, "workers": 1, "seconds": 5.0, "count": 0, "each": True}
    with pytest.raises(pytest.fail.Exception, match=r"^nobody met: kill\nagain: HOSTLER_SEED="):
        test_mixed_faults.dose(tmp_path, FOLDER, 17, **given)


def test_seed_asked_for_wins_and_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOSTLER_SEED", raising=False)
    assert repeatable(4) == 4 and repeatable() == seed_of_commit(ROOT)
    monkeypatch.setenv("HOSTLER_SEED", "17")
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/a.py::test_a[b c] (call)")
    assert repeatable(4) == repeatable() == 17
    shown = capsys.readouterr().out.splitlines()
    assert shown[2] == "again: HOSTLER_SEED=17 .venv/bin/python -m pytest 'tests/a.py::test_a[b c]'"


def test_seed_of_a_shallow_clone_is_that_of_its_commit(tmp_path: Path) -> None:
    whole, shallow = tmp_path / "whole", tmp_path / "shallow"
    for words in (
        ["init", str(whole)],
        *(["-C", str(whole), "commit", "--allow-empty", "-m", str(n)] for n in range(2)),
        ["clone", "--depth", "1", whole.as_uri(), str(shallow)],
    ):
        own = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *own, *words], check=True, capture_output=True)
    day = seed_of_commit(tmp_path, datetime.date(2026, 11, 1))
    assert seed_of_commit(shallow) == seed_of_commit(whole) != day


def test_seed_without_git_changes_with_the_day(tmp_path: Path) -> None:
    days = [seed_of_commit(tmp_path, datetime.date(2026, 11, day)) for day in (1, 2)]
    assert days[1] == days[0] + 1
