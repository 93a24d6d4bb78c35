"""What an attempt by hand does with those before it: delivers what a dead one left, answers for it, goes on.

Loaded when there was one: a first attempt needs nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable

from hostler.records import checkpoints, heartbeats
from hostler.records.attempt import Attempt
from hostler.records.checkpoints import Checkpoint
from hostler.records.entries import Lost
from hostler.records.handoff import Handoff
from hostler.sdk.alone import leftovers
from hostler.sdk.alone.choose import Chosen
from hostler.settings import Timing
from hostler.store import Store


def answer(store: Store, chosen: Chosen, timing: Timing, say: Callable[[str], None]) -> Lost | None:
    """What the claim says of an attempt that is gone; what that left is in the store then."""
    if chosen.lost is None:
        return None
    leftovers.deliver(store, chosen.log, chosen.lost, timing, say=say)
    if chosen.lost.session:
        heartbeats.silence(store, chosen.lost.session)
    saved = checkpoints.committed(store, chosen.log.key.run)
    return Lost(chosen.lost.attempt, any(place.attempt == chosen.lost.attempt for place in saved))


def restore(store: Store, attempt: Attempt, folder: Handoff, say: Callable[[str], None]) -> Checkpoint | None:
    state = attempt.state
    return checkpoints.restore_newest(
        store,
        attempt.key.run,
        folder.checkpoint,
        skip=state.suspects,
        after=state.fresh_from,
        before=attempt.number,
        say=say,
    )
