"""Bundles of runs, one after the other on a machine, for sweeps so large that each run hardly matters. Pure.

A setting in bundles has as much work, as many checkpoints and as many preemptions; what a machine of it does
at the end is off by a part of a bundle, which is little beside all that it has done.
"""

from __future__ import annotations

from dataclasses import replace

from hostler.simulate.fleets import Setting
from hostler.simulate.times import VaryingSeconds

ROUNDS = 40  # bundles of a machine, at least


def bundled(one: Setting) -> Setting:
    """The setting in bundles where its machines have many runs each; as it is where they have few, or where a
    worker goes after few."""
    scene = one.scene
    size = scene.runs // (ROUNDS * scene.workers * scene.seats)
    if size < 2 or scene.each is not None:
        return one
    count = scene.runs // size
    share = scene.runs / count  # runs of a bundle
    seconds = share * scene.length.mean + (share - 1) * scene.gap.mean
    whole = scene.every >= scene.length.longest  # no run is saved but by its end
    made = replace(
        scene,
        runs=count,
        job=replace(scene.job, retries=scene.job.retries * size),
        length=VaryingSeconds((seconds,)),
        every=scene.length.mean if whole else scene.every,
        save=0.0 if whole else scene.save,
    )
    return replace(one, scene=made)
