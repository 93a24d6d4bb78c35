"""In which order the suite's workers get tests.

Each worker of pytest-xdist begins with an equal, contiguous part of the list and, when it is through, takes
tests from the end of another's. Slow files mostly wait (for kills, leases, servers), quick ones compute. So
all workers but one begin with their share of slow files, and have quick ones behind them; the last worker has
quick ones alone, and takes those of the others when it is through. While some wait somebody computes, and
neither a core nor the end of the suite waits for the last slow test. A file stays whole where it can: what
its tests share is made once. So do files whose tests share a server or a browser: it is started once, and
not by each worker. The longest tests come first, so that the last ones are short; how long a test takes is
known from the last time, if there was one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

QUICK = "tests/unit/"
FEW = 2  # workers of whom all begin with slow files
SHARED = ("seaweed_url", "four_hosts", "browser", "azurite_url", "moto_url")  # fixtures that cost seconds
GUESSES = {
    QUICK: 0.1,
    "tests/contract/": 0.3,
    "tests/fuzz/": 0.5,
    "tests/hostile/": 0.3,
    "tests/real/": 2.0,
}  # seconds of a test that nobody has measured
OTHERS = 5.0


def guess(file: str) -> float:
    return next((seconds for folder, seconds in GUESSES.items() if file.startswith(folder)), OTHERS)


def dealt(
    files: Sequence[str],
    workers: int,
    seconds: Sequence[float] | None = None,
    shared: Mapping[str, str] | None = None,
) -> list[int]:
    """The new order of tests, given the file of each, and how long it takes. `shared`: file → what its tests
    have in common with those of other files."""
    places: dict[str, list[int]] = {}
    for place, file in enumerate(files):
        places.setdefault(file, []).append(place)
    each = seconds or [guess(file) for file in files]
    long = {file: sum(each[place] for place in its) for file, its in places.items()}
    hands: list[list[str]] = [[] for _ in range(workers)]
    slow = [file for file in places if not file.startswith(QUICK)]
    for family in _families(slow, long, shared or {}):
        free = hands if workers <= FEW else hands[:-1]
        min(free, key=lambda hand: sum(long[file] for file in hand)).extend(family)
    for hand in hands:
        hand.sort(key=lambda file: -long[file] / len(places[file]))
    quick = [place for file in places if file.startswith(QUICK) for place in places[file]]
    order = [[place for file in hand for place in places[file]] for hand in hands]
    share = len(files) // workers
    for begun in reversed(order):
        room = max(0, share - len(begun))
        begun += quick[:room]
        del quick[:room]
    return [place for begun in order for place in begun] + quick


def _families(files: Sequence[str], long: Mapping[str, float], shared: Mapping[str, str]) -> list[list[str]]:
    """Files that go to one worker, those that take longest first."""
    found: dict[str, list[str]] = {}
    for file in files:
        found.setdefault(shared.get(file, file), []).append(file)
    return sorted(found.values(), key=lambda family: -sum(long[file] for file in family))


def kin(needs: Sequence[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """File → what its tests share with those of other files, given the file and the fixtures of each test.
    Of several the one that most of its tests need."""
    wanted: dict[str, Counter[str]] = {}
    for file, fixtures in needs:
        for name in SHARED:
            if name in fixtures:
                wanted.setdefault(file, Counter())[name] += 1
    return {file: count.most_common(1)[0][0] for file, count in wanted.items()}
