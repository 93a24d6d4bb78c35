"""Deterministic algorithms without torch's compiler, which takes seconds to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import torch
from hostler.train import seeds
from hostler.train.config import Config

wanted = sys.argv[1] == "True"
seeds.make_repeatable(Config(dataset="d", model="m", deterministic=wanted))
early = [name for name in ("torch._inductor", "torch._dynamo", "sympy") if name in sys.modules]
flags = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
import torch._inductor.config as compiler
late = compiler.deterministic
seeds.make_repeatable(Config(dataset="d", model="m", deterministic=not wanted))
now = torch.are_deterministic_algorithms_enabled()
print(early, *flags, late, compiler.deterministic, now)
"""


@pytest.mark.parametrize("wanted", [True, False])
def test_compiler_is_not_imported_and_hears_of_it_when_it_is(wanted: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(wanted)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == ["[]", *map(str, (wanted, True, wanted, not wanted, not wanted))]
