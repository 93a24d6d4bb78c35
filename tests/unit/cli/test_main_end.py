"""The end of a command: what it has imported is not searched for cycles; `train` has a person's objects."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from hostler.cli import main

class Person:
    def __del__(self):
        print("goes")

def perform():
    one = Person()
    one.itself = one  # only a look for cycles finds it
    return 7

sys.argv = ["hostler", *sys.argv[1:]]
main._main = perform
main.main()
"""


@pytest.mark.parametrize(("verb", "said"), [("status", ""), ("train", "goes\n")])
def test_command_ends_without_a_look_for_cycles_but_train(verb: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, verb], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (7, said, "")
