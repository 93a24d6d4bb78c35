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


def test_progress_on_a_terminal_overwrites_one_line() -> None:
    said = told(Screen(), [1.0] * 4)
    assert said.count("\r") == 4 and said.count("\n") == 1
    assert said.endswith("hostler: data 'train': 80 of 80 MB, 20.0 MB/s\n")


def test_progress_elsewhere_prints_lines_now_and_then() -> None:
    lines = told(io.StringIO(), [4.0] * 6).splitlines()
    assert [line.split(": ")[2].split(",")[0] for line in lines] == [
        "20 of 120 MB",
        "80 of 120 MB",
        "120 of 120 MB",
    ]


def test_progress_rate_leaves_out_bytes_already_stored() -> None:
    said = told(io.StringIO(), [0.0, 0.0, 2.0], old=2)
    assert "60 of 60 MB, 10.0 MB/s (40 MB were there)" in said
