from __future__ import annotations

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
