"""A pytest suite that every cloud passes: a backend whose machines come with a launch (`Cloud`).

Subclass it and give it these fixtures:

| fixture | is |
|---|---|
| `cloud` | the backend |
| `colleague` | another one for the same cloud, as another process has it |
| `fleet` | a fleet of one worker, with its `scope` and `store` |
| `launch` | its launch, with a generation; the store has work for ten minutes, so that workers stay |
| `refuse` | called without arguments: from then on the platform gives no machine of this fleet |
| `kept_secrets` | called without arguments: names of all that holds a secret on the platform now |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from hostler.backends.base import Cloud, Launch, Thing, Undone, Vaulted
from hostler.errors import CloudError
from hostler.spec.names import as_label, store_label
from hostler.spec.project import Fleet
from hostler.testing.backend_contract import wait_until

SECRETS = {"TOKEN_OF_MINE": "hunter2-hunter2"}
HOUR = 3600.0


class CloudContract:
    def test_cloud_says_that_its_launches_make_machines(self, cloud: Cloud) -> None:
        assert isinstance(cloud, Cloud)
        assert cloud.capabilities.makes_machines and cloud.capabilities.lasts

    def test_plans_of_one_launch_are_equal_and_make_nothing(
        self, cloud: Cloud, colleague: Cloud, fleet: Fleet, launch: Launch
    ) -> None:
        first = cloud.plan(fleet, launch)
        assert first == cloud.plan(fleet, launch) == colleague.plan(fleet, launch)
        assert first.text != cloud.plan(fleet, _as_launch(launch, 8)).text
        assert not cloud.remains(fleet, everywhere=True)

    def test_completed_fleet_has_the_same_plan(self, cloud: Cloud, fleet: Fleet, launch: Launch) -> None:
        completed = cloud.completed(fleet)
        assert completed == cloud.completed(fleet) == cloud.completed(completed)
        assert cloud.plan(completed, launch).text == cloud.plan(fleet, launch).text

    def test_started_launch_is_listed_with_owner_and_generation(
        self, cloud: Cloud, colleague: Cloud, fleet: Fleet, launch: Launch
    ) -> None:
        """Started once more it makes nothing twice; and where it is, another store's gets no place."""
        launch = _as_launch(launch, 7)
        plan = cloud.plan(fleet, launch)
        started = cloud.start(plan)
        assert sum(worker.count for worker in started) == fleet.workers
        assert {worker.id for worker in started} <= {worker.id for worker in colleague.list(fleet)}
        there = colleague.remains(fleet)
        assert any(thing.works for thing in there) and all(thing.ours for thing in there)
        assert {_owner(thing) for thing in there} == {_owner_of(fleet)}
        assert {thing.generation for thing in there} == {"7"}
        assert all("-7" in thing.name for thing in there)
        assert paths(there) <= paths(colleague.remains(fleet, everywhere=True))

        again = colleague.start(plan)
        assert paths(cloud.remains(fleet)) == paths(there), "it was made twice"
        assert sum(worker.count for worker in again) == fleet.workers

        other = replace(fleet, store=f"{fleet.store}-two")
        with pytest.raises(Undone, match="is taken") as caught:
            cloud.start(cloud.plan(other, launch))
        assert caught.value.seconds == 0.0 and caught.value.hint
        assert paths(cloud.remains(fleet)) == paths(there) and not cloud.remains(other)

    def test_anyone_removes_a_launch_with_its_secrets_and_twice_is_fine(
        self,
        cloud: Cloud,
        colleague: Cloud,
        fleet: Fleet,
        launch: Launch,
        kept_secrets: Callable[[], Collection[str]],
    ) -> None:
        launch, vault = replace(launch, secrets=SECRETS), None
        if isinstance(cloud, Vaulted) and (vault := cloud.vault(fleet)):
            vault.put(launch.generation, SECRETS, time.time() + HOUR)
            launch = replace(launch, vault=vault.place(launch.generation, list(SECRETS)))
        plan = cloud.plan(fleet, launch)
        assert not any(value in plan.text + repr(plan) for value in SECRETS.values())
        cloud.start(plan)
        assert kept_secrets()
        there = cloud.remains(fleet)
        colleague.remove(fleet, there)
        cloud.remove(fleet, there)
        wait_until(lambda: not kept_secrets() and not cloud.remains(fleet))
        assert not cloud.remains(fleet, everywhere=True) and not cloud.list(fleet)
        assert not cloud.stop(fleet)

    def test_things_of_other_owners_stay(self, cloud: Cloud, fleet: Fleet, launch: Launch) -> None:
        others = [
            replace(fleet, scope=f"{fleet.scope}-two"),
            replace(fleet, name=f"{fleet.name}-two"),
            replace(fleet, store=f"{fleet.store}-two"),
        ]
        made = [fleet, *others]
        for number, owner in enumerate(made, 1):
            cloud.start(cloud.plan(owner, _as_launch(launch, number)))
        there = [paths(cloud.remains(owner)) for owner in made]
        assert all(there)
        ours = cloud.remains(fleet, everywhere=True)
        assert {thing.project for thing in ours} == {as_label(fleet.scope)}
        assert {thing.store for thing in ours if not thing.ours} == {store_label(f"{fleet.store}-two")}
        cloud.stop(fleet)
        wait_until(lambda: not cloud.remains(fleet))
        assert [paths(cloud.remains(owner)) for owner in others] == there[1:]

    def test_refused_launch_leaves_nothing_and_says_why(
        self, cloud: Cloud, fleet: Fleet, launch: Launch, refuse: Callable[[], None]
    ) -> None:
        refuse()
        with pytest.raises(CloudError, match="taken down") as caught:
            cloud.start(cloud.plan(fleet, launch))
        assert isinstance(caught.value, Undone) and caught.value.hint
        wait_until(lambda: not cloud.remains(fleet, everywhere=True))


def paths(things: Sequence[Thing]) -> set[str]:
    return {f"{thing.kind} {thing.path}" for thing in things}


def _as_launch(launch: Launch, number: int) -> Launch:
    return replace(launch, generation=f"{launch.generation.rpartition('/')[0]}/{number}")


def _owner(thing: Thing) -> tuple[str, str, str]:
    return thing.project, thing.fleet, thing.store


def _owner_of(fleet: Fleet) -> tuple[str, str, str]:
    return as_label(fleet.scope), as_label(fleet.name), store_label(fleet.store)
