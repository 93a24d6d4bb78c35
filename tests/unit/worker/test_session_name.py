"""Names of worker processes, and whose place one has taken."""

from __future__ import annotations

import pytest

from hostler.backends.slurm.host import host_of
from hostler.spec.names import check_part
from hostler.worker.session_name import new_session, place_of, succeeds


@pytest.mark.parametrize("place", ["", "zones/z/instances/v-x1f2"])
def test_sessions_are_valid_key_names_and_never_the_same(place: str) -> None:
    names = {new_session("Büro PC.local", place, 1_800_000_000) for _ in range(100)}
    assert len(names) == 100
    assert all(check_part(name) for name in names)


def test_later_tenant_of_a_place_succeeds_the_earlier_one() -> None:
    first, second = new_session("a", "gpus/3 71_2 0", 0), new_session("b", "gpus/3 71_2 0", 1)
    assert succeeds(second, first)
    assert not succeeds(first, second) and not succeeds(first, first)


@pytest.mark.parametrize("host", ["a", "gpu-0123456789ab.7"])
def test_workers_of_other_places_or_of_none_succeed_nobody(host: str) -> None:
    here = new_session(host, "71_2", 5)
    others = [new_session(host, "71_3", 4), new_session(host), new_session(host, "71_2", 5), "old-name"]
    assert not any(succeeds(here, other) or succeeds(other, here) for other in others)


def test_the_same_task_of_another_launch_is_another_place() -> None:
    task = host_of({"SLURM_JOB_ID": "71", "SLURM_RESTART_COUNT": "1"})
    before = host_of({"SLURM_JOB_ID": "71"})
    here = new_session("a", *place_of(task, "gpus/3"))
    assert succeeds(here, new_session("a", *place_of(before, "gpus/3")))
    assert not succeeds(here, new_session("a", *place_of(before, "gpus/4")))
