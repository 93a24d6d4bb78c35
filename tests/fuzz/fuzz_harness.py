"""How a reader is fuzzed: good examples, damaged by a seed, and the bounds in which the reader must answer.

A reader returns, or raises an error of hostler's in one line. Any other exception is a crash. Each example
has SECONDS of this process's own processor time, so that a busy machine is not a hang, and a WAIT of the
clock on the wall, for a reader that sleeps. The reader may take MEMORY more than the process had, and writes
nothing outside its folder.
"""

from __future__ import annotations

import resource
import signal
import string
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escape_watch import WATCH
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hostler.errors import HostlerError

SECONDS = 4.0
WAIT = 60.0
MEMORY = 400 << 20
ROUND = 400  # examples of one seed in the long dose


class Hang(BaseException):
    """No `except Exception` of the reader's takes it for its own."""


class Breach(AssertionError):
    """A promise that the reader did not keep."""


@dataclass(frozen=True)
class Target:
    """A reader of what comes from outside. `read` may leave files in the folder it is given, and below it."""

    name: str
    reads: str  # in words, for the table
    examples: Callable[[], st.SearchStrategy[Any]]
    read: Callable[[Any, Path], object]


def fuzz(target: Target, folder: Path, *, examples: int, number: int, shrinks: bool = True) -> None:
    """Read so many damaged examples of a seed; the smallest that breaks a promise fails."""

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.examples())
    def holds(value: Any) -> None:
        keeps_its_promises(lambda: target.read(value, folder), folder)

    holds()


def fuzz_for(seconds: float, target: Target, folder: Path, *, number: int) -> int:
    """Seed after seed until the time is over; how many there were."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        fuzz(target, folder, examples=ROUND, number=number + count)
        count += 1
    return count


def keeps_its_promises(read: Callable[[], object], folder: Path) -> None:
    with WATCH.over(folder) as escapes:
        try:
            _answers(read)
        except Exception as error:
            if not escapes:  # else it failed because it was not let out
                raise
            raise Breach(f"wrote outside its folder: {escapes}") from error
    if escapes:
        raise Breach(f"wrote outside its folder: {escapes}")


def _answers(read: Callable[[], object]) -> None:
    begun = time.monotonic()
    try:
        with bounded():
            read()
    except HostlerError as error:
        if "\n" in error.message:
            raise Breach(f"not one line: {error.message[:300]!r}") from error
    except Hang:
        took = time.monotonic() - begun
        raise Breach(f"no answer within {SECONDS:g} s of processor time, or {took:.1f} s in all") from None
    except MemoryError:
        raise Breach(f"more than {MEMORY >> 20} MB") from None


@contextmanager
def bounded() -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise Hang

    before = {number: signal.signal(number, ring) for number in (signal.SIGPROF, signal.SIGALRM)}
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_taken() + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    # Again each second: a pool of threads that is left waits for its threads once more.
    theirs, begun = signal.setitimer(signal.ITIMER_REAL, WAIT, 1.0)[0], time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        for number, handler in before.items():
            signal.signal(number, handler)
        if theirs:  # the time that the whole test has
            signal.setitimer(signal.ITIMER_REAL, max(0.01, theirs - (time.monotonic() - begun)))


def _taken() -> int:
    """Bytes of addresses that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


# Damage

ODD_BYTES = (
    *(b"", b"\0", b"\xff\xfe", b"..", b"../../x", b"/etc/passwd", b"~", b"\n", b"\r\n\t", b'"', b"'", b"\\"),
    *(b"{", b"}", b"[", b"]", b"[" * 500, b"{" * 500, b"(" * 300, b"null", b"NaN", b"-1", b"0", b"1e999"),
    *(b"9" * 30, b"9" * 5000, b"\x1b[2J", b"\xc3\x28", b"&a", b"*a", b"!!python/object:os.system", b"%s"),
    *(b"\x7f\xff\xff\xff", b"\xff" * 8, b"\x80" * 8, b"=", b":", b": ", b"- ", b"#", b",", b"$(x)", b"`x`"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), "", "x", "../x", "/etc/passwd", "\0", "\x1b[2J", "a" * 5000, "9" * 5000),
    *("ä\u2028\ud800", "true", "1e999", [], [None], [[]], {}, {"": None}, {"a": {}}, [0] * 300, "%s%n"),
)


@st.composite
def damaged(draw: st.DrawFn, good: Sequence[bytes]) -> bytes:
    """A good example after a few edits: signs changed, put in, left out, doubled, or of another example."""
    data = draw(st.sampled_from(list(good)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        how = draw(st.integers(0, 5))
        if how == 0:
            data = data[:at] + draw(st.binary(min_size=1, max_size=8)) + data[end:]
        elif how == 1:
            data = data[:at] + draw(st.sampled_from(ODD_BYTES)) + data[end:]
        elif how == 2:
            data = data[:at] + data[end:]
        elif how == 3:
            data = data[:end] + data[at:]
        elif how == 4:
            data = data[:at]
        else:
            other = draw(st.sampled_from(list(good)))
            data = data[:at] + other[draw(st.integers(0, len(other))) :]
    return data


def damaged_text(*good: str) -> st.SearchStrategy[str]:
    return damaged([text.encode() for text in good]).map(lambda data: data.decode("utf-8", "replace"))


@st.composite
def bent(draw: st.DrawFn, good: Sequence[Any]) -> Any:
    """A good tree of tables and lists in which a few nodes are something else, are gone, or are doubled."""
    tree = _copied(draw(st.sampled_from(list(good))))
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(tree))
        holder, key = draw(st.sampled_from(places)) if places else (None, None)
        how = draw(st.integers(0, 3))
        if holder is None:
            tree = _copied(draw(st.sampled_from(ODD_VALUES)))
        elif how == 0 and isinstance(holder, dict):
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[draw(st.text(string.printable, max_size=6))] = _copied(draw(st.sampled_from(ODD_VALUES)))
        elif how == 2:
            other, name = draw(st.sampled_from(places))
            holder[key] = _copied(other[name])
        else:
            holder[key] = _copied(draw(st.sampled_from(ODD_VALUES)))
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every node below the root, by its holder and its key there."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def _copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copied(value) for key, value in tree.items()}
    return [_copied(one) for one in tree] if isinstance(tree, list) else tree
