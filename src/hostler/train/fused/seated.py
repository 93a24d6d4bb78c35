"""The runs that a worker gave to one process: who can goes together, the others are sent back.

What does not fit on the device is split; what cannot go together is left to processes of its own. Each
learns why.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from hostler.errors import HostlerError
from hostler.sdk.leaving import Leaving
from hostler.sdk.messages import say
from hostler.sdk.run import Run
from hostler.sdk.shared_process import Common, SharedRun
from hostler.sdk.start import Wish
from hostler.spec.files import tracking_words
from hostler.train import parts, ranks, seeds
from hostler.train.config import Config
from hostler.train.fused import alike, places
from hostler.train.fused.alike import Apart
from hostler.train.fused.group import Load
from hostler.train.fused.places import GroupPlace, Standing
from hostler.train.fused.ride import GroupTooLarge, Ride
from hostler.train.fused.rider import Rider
from hostler.train.identity import params_of, tags_of, trackers_of

NEVER = f"{1 << 62} steps"  # a group is saved as one: none of its runs by itself
Read = Callable[[SharedRun], Config]


def train(
    seats: Sequence[SharedRun], read: Read, limit: int | None = None, data: Load = parts.data_of
) -> bool:
    """Until none of these runs is here any more; whether all has gone well, and others may come. `limit`: so
    many are known to fit, at most. `data` loads them."""
    signals = Common(say, wanted=(signal.SIGTERM,))
    signals.install()
    taken = [run for seat in seats if (run := _taken(seat, read, signals))]
    for started_run in taken:
        if limit is not None and started_run.width > limit:
            started_run.narrow(f"{started_run.width} did not fit")
    choice = places.choose([one.standing for one in taken])
    for number in choice.later:
        _send_back(taken[number], "the others of this process are at other steps, or of another group")
    for number in choice.alone:
        _send_back(taken[number], "its training began alone, and goes on alone", alone=True)
    well = _go([taken[number] for number in choice.go], data)
    signals.all_left()
    return well and signals.reason is None


class _StartedRun:
    """A run that has begun, before it is known with whom it goes."""

    def __init__(self, seat: SharedRun, run: Run, config: Config) -> None:
        self.seat, self.run, self.config = seat, run, config
        self.standing = Standing(run.step, places.of(run.memory))

    @property
    def width(self) -> int:
        """Width of its group; 1 without a group."""
        return self.standing.place.width if self.standing.place else 1

    def narrow(self, why: str) -> None:
        """It is of no group any more."""
        self.standing = Standing(self.standing.step, GroupPlace())
        places.put(self.run.memory, GroupPlace())
        self.seat.say(f"{why}: its numbers agree up to rounding from here on")

    def rider(self) -> Rider | None:
        """None if its own files cannot be made, which is its end."""
        try:
            return Rider(self.run, self.config, end=self.ended, show=self.seat.print)
        except (HostlerError, OSError) as error:
            self.ended(error)
            return None

    def ended(self, error: BaseException | None) -> None:
        """Told to its worker as the end of a process would be."""
        try:
            self.run.close(error)
        except (HostlerError, OSError) as trouble:
            error = trouble
        if error is None:
            self.seat.leave()
        elif isinstance(error, Leaving):
            self.seat.leave(int(str(error.code)))
        else:
            self.seat.fail(error)


def _taken(seat: SharedRun, read: Read, signals: Common) -> _StartedRun | None:
    """Begin one; what is wrong with it is said in its own log."""
    try:
        asked = read(seat)
        if asked.output_dir is not None:
            asked = asked.but(output_dir=str(seat.cwd / asked.output_dir))
        run = seat.take(params_of(asked), _wish(asked), signals)
    except (HostlerError, OSError) as error:
        seat.fail(error)
        return None
    return _StartedRun(seat, run, seeds.seeded(asked, run, ranks.TrainRanks()))


def _wish(asked: Config) -> Wish:
    trackings = tracking_words.at(tracking_words.parse(trackers_of(asked) or {}), Path.cwd())
    return Wish(tags=tags_of(asked), save_every=NEVER, trackers=trackings)


def _go(taken: Sequence[_StartedRun], data: Load) -> bool:
    """Whether they went as they came."""
    if not taken:
        return True
    seeds.make_repeatable(taken[0].config)
    riders = [found for run in taken if (found := run.rider())]
    if not riders:
        return True
    fewer: int | None = None
    try:
        alike.check([one.config for one in riders])
        ride = Ride(riders, ranks.device_of(riders[0].config), data)
    except Apart as error:
        for started_run in taken:
            _send_back(started_run, error.message, limit=1)
    except GroupTooLarge as error:
        fewer = error.fewer
    except HostlerError as error:
        for rider in riders:
            rider.end(error)
    else:
        return _ridden(ride, taken)
    if fewer is not None:  # out here: nothing holds what the failed try has made
        for rider in riders:
            rider.folder.close()
        _go(_fewer([run for run in taken if not run.run.closed], fewer), data)
    return False


def _ridden(ride: Ride, taken: Sequence[_StartedRun]) -> bool:
    try:
        for _ in ride.epochs():
            pass
    except GroupTooLarge as error:
        for run in taken:
            _send_back(run, f"out of memory among {len(taken)}", limit=max(1, error.fewer))
        return False
    return True


def _fewer(taken: Sequence[_StartedRun], fewer: int) -> Sequence[_StartedRun]:
    """The runs to try next; the others are sent back. A group with empty places is narrowed first."""
    width = max(run.width for run in taken)
    if width > len(taken):
        for started_run in taken:
            started_run.narrow(f"{width} do not fit here")
        return taken
    for started_run in taken[fewer:]:
        _send_back(started_run, f"{len(taken)} do not fit on the device together", limit=max(1, fewer))
    for started_run in taken[:fewer]:
        started_run.seat.say(f"{len(taken)} do not fit on the device together: {fewer} are tried")
    return taken[:fewer]


def _send_back(one: _StartedRun, why: str, *, limit: int | None = None, alone: bool = False) -> None:
    if one.run.closed:
        return
    one.run.close(Leaving("apart"))
    one.seat.send_back(why, limit=limit, alone=alone)
