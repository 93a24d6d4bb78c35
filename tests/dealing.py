"""In which order the suite's workers get tests.

Each worker of pytest-xdist begins with an equal, contiguous part of the list and, when it is through, takes
tests from the end of another's. Slow files mostly wait (for kills, leases, servers), quick ones compute. So
all workers but one begin with their share of slow files, and have quick ones behind them; the last worker has
quick ones alone, and takes those of the others when it is through. While some wait somebody computes, and
neither a core nor the end of the suite waits for the last slow test. A file stays whole where it can: what
its tests share is made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

QUICK = "tests/unit/"
FEW = 2  # workers of whom all begin with slow files


def dealt(files: Sequence[str], workers: int) -> list[int]:
    """The new order of tests, given the file of each."""
    places: dict[str, list[int]] = {}
    for place, file in enumerate(files):
        places.setdefault(file, []).append(place)
    hands: list[list[int]] = [[] for _ in range(workers)]
    slow = Counter(file for file in files if not file.startswith(QUICK))
    for file, _ in slow.most_common():
        min(hands if workers <= FEW else hands[:-1], key=len).extend(places[file])
    quick = [place for file in places if file.startswith(QUICK) for place in places[file]]
    share = len(files) // workers
    for hand in reversed(hands):
        room = max(0, share - len(hand))
        hand += quick[:room]
        del quick[:room]
    return [place for hand in hands for place in hand] + quick
