from __future__ import annotations

from pathlib import Path

import pytest

from hostler.worker.run import run_folders, tracebacks
from hostler.worker.run.exit import Exit
from hostler.worker.run.failure import classify

# As rich prints it into a file: 80 columns, long paths folded at the border.
RICH = """loading
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /home/me/.cache/hostler/runs/0123456789abcdef-host-12345/0000000-demo-abc123 │
│ -1/work/src/train.py:7 in main                                               │
│                                                                              │
│    6 │   try:                                                                │
│ ❱  7 │   │   {}["k"]                                                         │
│    8 │   except KeyError:                                                    │
╰──────────────────────────────────────────────────────────────────────────────╯
KeyError: 'k'

During handling of the above exception, another exception occurred:

╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /home/me/.cache/hostler/runs/0123456789abcdef-host-12345/0000000-demo-abc123 │
│ -1/work/src/train.py:9 in main                                               │
│                                                                              │
│ ❱  9 │   │   f(1)                                                            │
│   10 main()                                                                  │
│                                                                              │
│ /usr/lib/python3.11/site-packages/torch/nn.py:4 in f                         │
│                                                                              │
│ ❱  4 │   return x + "a"                                                      │
│    5 def main():                                                             │
│                                                                              │
│ ╭─ locals ─╮                                                                 │
│ │ x = 1    │                                                                 │
│ ╰──────────╯                                                                 │
╰──────────────────────────────────────────────────────────────────────────────╯
TypeError: unsupported operand type(s) for +: 'int' and a string that is longer
than the box
"""
RICH_SYNTAX = """╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /x/s.py:3 in <module>                                                        │
│                                                                              │
│ ❱ 3 import syn                                                               │
╰──────────────────────────────────────────────────────────────────────────────╯
╭──────────────────────────────────────────────────────────────────────────────╮
│  /x/syn.py:1                                                                 │
│ def f(:                                                                      │
│       ▲                                                                      │
╰──────────────────────────────────────────────────────────────────────────────╯
SyntaxError: invalid syntax
"""
TYPER = """Usage: ty.py [OPTIONS] {lr}
Try 'ty.py --help' for help.
╭─ Error ──────────────────────────────────────────────────────────────────────╮
│ No such option: --foo                                                        │
╰──────────────────────────────────────────────────────────────────────────────╯
"""
NOTEBOOK = """Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/nbclient/client.py", line 918, in _check_raise_for_error
    raise CellExecutionError.from_cell_and_msg(cell, exec_reply_content)
nbclient.exceptions.CellExecutionError: An error occurred while executing the following cell:
------------------
f(1)
------------------


\x1b[31m---------------------------------------------------------------------------\x1b[39m
\x1b[31mTypeError\x1b[39m                                 Traceback (most recent call last)
\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[2]\x1b[39m\x1b[32m, line 3\x1b[39m
\x1b[32m      1\x1b[39m def f(x):
\x1b[32m----> \x1b[39m\x1b[32m3\x1b[39m f(\x1b[32m1\x1b[39m)

\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[2]\x1b[39m\x1b[32m, line 2\x1b[39m, in \x1b[36mf\x1b[39m(x)
\x1b[32m----> \x1b[39m\x1b[32m2\x1b[39m     return x+'a'

\x1b[31mTypeError\x1b[39m: unsupported operand type(s) for +: 'int' and 'str'

"""
IPYTHON = """TypeError                                 Traceback (most recent call last)
File ~/.cache/hostler/runs/s/r-1/work/train.py:3
      1 def f(x):
----> 3 f(1)

File ~/.cache/hostler/runs/s/r-1/work/train.py:2, in f(x)
----> 2     return x+'a'

TypeError: no
"""
CACHE = Path("/home/me/.cache/hostler")


def in_project(text: str) -> str:
    return run_folders.in_project(CACHE, text)


def test_rich_traceback_is_read_with_paths_of_the_project() -> None:
    verdict = classify(Exit(code=1), RICH, in_project=in_project)
    long = "TypeError: unsupported operand type(s) for +: 'int' and a string that is longer than the box"
    assert (verdict.kind, verdict.message, verdict.where) == ("error", long, "src/train.py:9")
    assert verdict.traceback.splitlines() == [
        "Traceback (most recent call last):",
        '  File "src/train.py", line 7, in main',
        '    {}["k"]',
        "KeyError: 'k'",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "src/train.py", line 9, in main',
        "    f(1)",
        '  File "/usr/lib/python3.11/site-packages/torch/nn.py", line 4, in f',
        '    return x + "a"',
        long,
    ]


def test_rich_syntax_error_names_the_line_that_does_not_compile() -> None:
    verdict = classify(Exit(code=1), RICH_SYNTAX)
    assert (verdict.kind, verdict.where) == ("syntax", "/x/syn.py:1")


def test_usage_error_in_a_box_is_a_usage_error() -> None:
    verdict = classify(Exit(code=2), TYPER)
    assert (verdict.kind, verdict.message) == ("usage", "Error: No such option: --foo")


def test_notebooks_error_points_at_the_cell_and_line() -> None:
    verdict = classify(Exit(code=1), NOTEBOOK)
    assert verdict.message == "TypeError: unsupported operand type(s) for +: 'int' and 'str'"
    assert verdict.where == "Cell In[2], line 2: return x+'a'"
    assert "  Cell In[2], line 2, in f(x)\n    return x+'a'\nTypeError" in verdict.traceback


def test_ipython_error_points_at_the_file_in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    run_folders._copies.cache_clear()
    verdict = classify(Exit(code=1), IPYTHON, in_project=in_project)
    run_folders._copies.cache_clear()
    assert verdict.where == "train.py:2" and 'File "train.py", line 3' in verdict.traceback


def test_box_that_was_cut_off_is_left_as_it_is() -> None:
    assert tracebacks.last(RICH.rpartition("╰")[0].rpartition("╰")[0].rpartition("╰")[0]) is None


def test_place_that_fills_its_line_is_read_with_the_name_below() -> None:
    path = f"/home/me/.cache/{'runs/' * 10}work/train.py".ljust(74, "y")
    drawn = "\n".join(
        [
            "╭───────────────────── Traceback (most recent call last) ──────────────────────╮",
            f"│ {path}:4 │",
            "│ in main                                                                      │",
            "│                                                                              │",
            "│ ❱ 4 f(1)                                                                     │",
            "╰──────────────────────────────────────────────────────────────────────────────╯",
            "OSError: no disk",
        ]
    )
    found = tracebacks.last(drawn)
    assert found is not None and (found.where, found.error) == (f"{path}:4", "OSError")
