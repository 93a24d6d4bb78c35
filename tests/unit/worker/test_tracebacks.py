from __future__ import annotations

import pytest

from hostler.worker.run import tracebacks

SIMPLE = """Traceback (most recent call last):
  File "/x/a.py", line 1, in <module>
    main()
  File "/x/b.py", line 22, in main
    raise ValueError("no")
ValueError: no"""

CHAINED = """Traceback (most recent call last):
  File "/x/a.py", line 3, in load
    d["k"]
KeyError: 'k'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/a.py", line 5, in <module>
    raise RuntimeError("cannot load") from None
RuntimeError: cannot load"""


def test_no_traceback_is_none() -> None:
    assert tracebacks.last("epoch 1\nValueError: printed by hand\n") is None


def test_the_last_of_several_is_taken_with_its_innermost_frame() -> None:
    found = tracebacks.last(SIMPLE.replace("ValueError", "KeyError") + "\nretrying\n" + SIMPLE + "\nbye\n")
    assert found is not None
    assert (found.headline, found.where, found.text) == ("ValueError: no", "/x/b.py:22", SIMPLE)


def test_a_chain_is_kept_whole_and_its_last_exception_speaks() -> None:
    found = tracebacks.last("noise\n" + CHAINED + "\n")
    assert found is not None
    assert found.headline == "RuntimeError: cannot load"
    assert found.text == CHAINED


def test_a_chain_does_not_swallow_an_unrelated_traceback_before_it() -> None:
    found = tracebacks.last(SIMPLE + "\nnoise\n" + CHAINED)
    assert found is not None and found.text == CHAINED


def test_lines_prefixed_by_a_launcher_are_read_as_one_process() -> None:
    mixed: list[str] = []
    for line in SIMPLE.splitlines():
        mixed += [f"[rank1]: {line}", "[rank0]: still fine"]
    found = tracebacks.last("\n".join(mixed))
    assert found is not None
    assert (found.headline, found.text) == ("ValueError: no", SIMPLE)


def test_a_launchers_own_traceback_yields_to_the_childs() -> None:
    wrapper = SIMPLE.replace(
        "ValueError: no", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    )
    found = tracebacks.last(SIMPLE + "\n" + wrapper)
    assert found is not None and found.name == "ValueError"


def test_a_data_loader_workers_original_traceback_is_the_telling_one() -> None:
    outer = SIMPLE.replace("ValueError: no", "RuntimeError: Caught KeyError in DataLoader worker process 0.")
    inner = SIMPLE.replace("Traceback", "Original Traceback").replace("ValueError: no", "KeyError: 'x'")
    found = tracebacks.last(outer + "\n" + inner + "\n\n")
    assert found is not None and found.headline == "KeyError: 'x'"


def test_a_script_that_does_not_compile_prints_no_header() -> None:
    found = tracebacks.last(
        '  File "/x/a.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'
    )
    assert found is not None and (found.name, found.where) == ("SyntaxError", "/x/a.py:3")


def test_colours_and_progress_bars_do_not_hide_it() -> None:
    text = "10%|#  |\r20%|## |\r" + SIMPLE.replace("ValueError: no", "\x1b[1;31mValueError\x1b[0m: no")
    found = tracebacks.last(text)
    assert found is not None and found.headline == "ValueError: no"


def test_traceback_cut_off_by_the_logs_end_does_not_count() -> None:
    assert tracebacks.last(SIMPLE.rpartition("\n")[0]) is None


CELLS = """Traceback (most recent call last):
  Cell In[3], line 5, in train
    return net(batch)
           ^^^^^^^^^^
  File "/lib/torch/nn.py", line 90, in forward
    raise ValueError("shape")
ValueError: shape
"""


def test_innermost_cell_of_a_notebook_is_named_with_its_line() -> None:
    found = tracebacks.last(CELLS)
    assert found is not None
    assert (found.cell, found.where) == ("Cell In[3], line 5: return net(batch)", "/lib/torch/nn.py:90")
    bare = tracebacks.last("Traceback (most recent call last):\n  Cell In[1], line 2, in f\nKeyError: 1\n")
    assert bare is not None and (bare.cell, bare.where) == ("Cell In[1], line 2", "Cell In[1], line 2")


FRAME = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    '


@pytest.mark.parametrize(
    "printed, headline",
    [
        (
            "net.load(state)\nRuntimeError: Error(s) in loading state_dict for Net:\n"
            '\tMissing key(s) in state_dict: "w".\n\tsize mismatch for b.\nbye\n',
            "RuntimeError: Error(s) in loading state_dict for Net: "
            'Missing key(s) in state_dict: "w". size mismatch for b.',
        ),
        (
            "run()\nRuntimeError: \n        An attempt has been made to start a new process.\n\nbye\n",
            "RuntimeError: An attempt has been made to start a new process.",
        ),
        (
            "Config(lr='x')\nValidationError: 1 validation error for Config\nlr\n  Not a number\n",
            "ValidationError: 1 validation error for Config lr Not a number",
        ),
        ("assert x > 1\n           ^^^^^\nAssertionError\n", "AssertionError: assert x > 1"),
        ("raise ValueError('with:')\nValueError: with:\nbye\n", "ValueError: with:"),
        ("raise Odd\nOdd\nbye\n", "Odd"),
    ],
)
def test_message_that_says_nothing_is_completed(printed: str, headline: str) -> None:
    found = tracebacks.last(FRAME + printed)
    assert found is not None and found.headline == headline


GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "train.py", line 9, in <module>
  |     main()
  | ExceptionGroup: several (2 sub-exceptions)
  +-+---------------- 1 ----------------
"""
OF_GROUP = """\
    | Traceback (most recent call last):
    |   File "data.py", line 2, in load
    |     int(text)
    | ValueError: not a number
    +---------------- 2 ----------------
    | TypeError: b
    +------------------------------------
"""


def test_exception_group_is_read_without_its_margin() -> None:
    found = tracebacks.last(f"epoch 1\n{GROUP}    | TypeError: b\n    +-----\nbye\n")
    assert found is not None
    assert (found.headline, found.where) == ("ExceptionGroup: several (2 sub-exceptions)", "train.py:9")
    inner = tracebacks.last(f"epoch 1\n{GROUP}{OF_GROUP}bye\n")
    assert inner is not None and (inner.headline, inner.where) == ("ValueError: not a number", "data.py:2")
