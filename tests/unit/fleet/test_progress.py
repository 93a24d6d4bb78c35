from __future__ import annotations

import io

from hostler.fleet.snapshot.progress import Progress


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(out: io.StringIO, steps: list[float], size: int = 20_000_000, old: int = 0) -> str:
    now = [0.0]
    progress = Progress("data 'train'", size * len(steps), out, lambda: now[0])
    for n, step in enumerate(steps):
        now[0] += step
        progress(size, n < old)
    return out.getvalue()


def test_what_is_quick_says_nothing() -> None:
    assert told(io.StringIO(), [0.1] * 5) == ""


def test_on_a_terminal_one_line_is_written_over_and_ends_when_all_is_there() -> None:
    said = told(Screen(), [1.0] * 4)
    assert said.count("\r") == 4 and said.count("\n") == 1
    assert said.endswith("hostler: data 'train': 80 of 80 MB, 20.0 MB/s\n")


def test_elsewhere_a_line_comes_now_and_then_and_at_the_end() -> None:
    lines = told(io.StringIO(), [4.0] * 6).splitlines()
    assert [line.split(": ")[2].split(",")[0] for line in lines] == [
        "20 of 120 MB",
        "80 of 120 MB",
        "120 of 120 MB",
    ]


def test_what_was_there_already_is_told_and_does_not_count_as_fast() -> None:
    said = told(io.StringIO(), [0.0, 0.0, 2.0], old=2)
    assert "60 of 60 MB, 10.0 MB/s (40 MB were there)" in said
