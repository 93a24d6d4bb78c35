"""Texts that stand for lists: what is read, what is refused, and that Python agrees."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import servers
from hostler.spec.formats import list_text

# A process that answers each line, a text, with what Python makes of it.
PYTHON = '''
import json, sys, warnings
import numpy as np
warnings.simplefilter("error")

class Ordered(set):
    """A set that is walked in order: Python's own order is nothing to rely on."""

    def __iter__(self):
        return iter(sorted(set.__iter__(self)))

def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    return value.hex() if isinstance(value, float) else value

for line in sys.stdin:
    try:
        found = eval(json.loads(line), {"np": np, "numpy": np, "set": Ordered})
        answer = {"value": plain(sorted(found) if isinstance(found, set) else list(found))}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
'''


class Interpreter:
    """A fresh Python with numpy, which evaluates texts."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PYTHON], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def list_of(self, text: str) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "value" in answer, (text, answer)
        return answer["value"]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def python() -> Iterator[Interpreter]:
    servers.library("numpy")
    interpreter = Interpreter()
    yield interpreter
    interpreter.close()


def agree(ours: Any, pythons: Any, ulps: int) -> bool:
    """Whether both are the same, types included; numbers may differ by some units in the last place."""
    if isinstance(ours, list):
        return (
            isinstance(pythons, list)
            and len(ours) == len(pythons)
            and all(agree(a, b, ulps) for a, b in zip(ours, pythons, strict=True))
        )
    if isinstance(ours, float):
        if not isinstance(pythons, str) or "0x" not in pythons:
            return False
        other = float.fromhex(pythons)
        return abs(ours - other) <= ulps * math.ulp(other)
    return type(ours) is type(pythons) and bool(ours == pythons)


def check(text: str, python: Interpreter) -> None:
    # numpy and the C library may each round a power in their own way
    powers = any(word in text for word in ("**", "power", "logspace", "geomspace"))
    assert agree(list_text.read(text), python.list_of(text), 32 if powers else 0), text


@pytest.mark.parametrize(
    "text",
    [
        "[float(x) for x in 2.0 ** np.arange(-6, 3)]",
        "[float(x)/10 for x in 2.0 ** np.arange(-3, 6)]",
        "[a * b for a in range(1, 4) for b in (0.1, 0.5) if a != 2]",
        "[(a, b) for a in [1, 2] for b in range(a)]",
        "np.linspace(0, 1, 7)",
        "np.linspace(3, 3, 4)",
        "np.linspace(0, 1, num=5, endpoint=False)",
        "np.linspace(5, 1, 1)",
        "np.logspace(-4, -1, 4).tolist()",
        "np.logspace(0, 3, 4, base=2)",
        "np.geomspace(1e-4, 1, 5)",
        "np.geomspace(-1, -1000, 4)",
        "np.arange(0.1, 1.0, 0.1)",
        "np.arange(1, 2.5)",
        "np.arange(10)[2:8:3]",
        "np.arange(5)[::-1].tolist()",
        "np.power(2, np.arange(5))",
        "np.power([1, 2, 3], 2.0)",
        "np.round(np.linspace(0, 1, 4), 2)",
        "[round(x, 1) for x in np.linspace(0.05, 0.95, 10)]",
        "[round(float(x), 1) for x in np.linspace(0.05, 0.95, 10)]",
        "[int(x) for x in 10 ** np.arange(4)]",
        "10.0 ** -np.arange(1, 4)",
        "list(range(3)) + [10] * 2",
        "sorted(set([3, 1, 2, 3]), reverse=True)",
        "{x % 3 for x in range(10)}",
        "[*range(3), *[7.5]]",
        "list(map(float, range(3)))",
        "0.9,0.99",
        "(0.9, 0.999)",
        "[x / 2 if x > 1 else -x for x in np.arange(4)]",
        "['a' + str(n) for n in range(3)]",
        "[max(a, b) for a, b in zip([1, 5], [4, 2])]",
        "[n * x for n, x in enumerate([0.5, 0.25], start=1)]",
        "[sum(range(n)) for n in range(4)]",
        "[None, True, 'x', [1, 2.5]]",
        "np.array([0.1, 0.2]) * 3",
        "np.arange(4).astype(float) / 2",
        "[1,\n   2]",
    ],
)
def test_text_gives_what_python_gives(text: str, python: Interpreter) -> None:
    assert list_text.stands_for_list(text)
    check(text, python)


whole = st.integers(-9, 12).map(str)
decimal = st.sampled_from(["0.1", "2.0", "1e-3", ".5", "10.0", "-1.5", "3e2"])
scalar = st.one_of(whole, decimal)
bounds = st.tuples(st.integers(-6, 3), st.integers(1, 8))


def rows() -> st.SearchStrategy[str]:
    """Texts of rows of numbers."""
    base = st.one_of(
        bounds.map(lambda b: f"np.arange({b[0]}, {b[0] + b[1]})"),
        st.tuples(decimal, bounds).map(lambda d: f"np.arange({d[1][0]}, {d[1][1]}, abs({d[0]}))"),
        st.tuples(scalar, scalar, st.integers(1, 6)).map(lambda d: f"np.linspace({d[0]}, {d[1]}, {d[2]})"),
        st.tuples(bounds, st.integers(1, 5)).map(lambda d: f"np.logspace({d[0][0]}, {d[0][1]}, {d[1]})"),
        st.tuples(decimal, st.integers(1, 5)).map(lambda d: f"np.geomspace(abs({d[0]}), 7, {d[1]})"),
        bounds.map(lambda b: f"range({b[0]}, {b[0] + b[1]})"),
        st.lists(scalar, min_size=1, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
    )
    return st.recursive(
        base,
        lambda inner: st.one_of(
            st.tuples(scalar, st.sampled_from(["**", "*", "+", "/"]), inner).map(" ".join),
            st.tuples(inner, st.sampled_from(["**", "*", "-", "/", "//", "%"]), scalar).map(
                lambda d: f"({d[0]}) {d[1]} {d[2]}"
            ),
            st.tuples(inner, st.integers(0, 3)).map(lambda d: f"np.round({d[0]}, {d[1]})"),
            inner.map(lambda row: f"({row})[1:]"),
            inner.map(lambda row: f"sorted({row})"),
            inner.map(lambda row: f"list({row})"),
            inner.map(lambda row: f"set({row})"),
        ),
        max_leaves=3,
    )


cells = st.sampled_from(
    ["x", "float(x)", "int(x)", "float(x)/10", "round(x, 2)", "x ** 2", "2.0 ** x", "-x", "x * 0.1", "[x, 1]"]
)
conditions = st.sampled_from(["", " if x > 0", " if x != 1 and x < 9", " if not x % 2", " if x in (1, 2, 3)"])
texts = st.one_of(
    rows(),
    st.tuples(cells, rows(), conditions).map(lambda d: f"[{d[0]} for x in {d[1]}{d[2]}]"),
    st.tuples(cells, rows(), rows(), conditions).map(
        lambda d: f"[({d[0]}) for x in {d[1]} for y in {d[2]}{d[3]}]"
    ),
)


@settings(max_examples=400, deadline=None)
@given(texts)
@example("[float(x) for x in 2.0 ** np.arange(-6, 3)]")
@example("[2 ** x for x in set(np.arange(3))]")
def test_accepted_text_equals_pythons_own_answer(python: Interpreter, text: str) -> None:
    try:
        list_text.read(text)
    except ValueError:
        return
    check(text, python)


HOSTILE = [
    "__import__('os')",
    "__import__('os').system('touch {mark}')",
    "[__import__('os').system('touch {mark}') for _ in [1]]",
    "open('{mark}', 'w')",
    "[open('{mark}', 'w')]",
    "[().__class__.__bases__[0].__subclasses__()]",
    "[x.__class__ for x in [1]]",
    "eval('[1]')",
    "[(lambda: 1)()]",
    "[y := 1]",
    "[f'{1}']",
    "10**10**10",
    "[10**10**10]",
    "[9**9**9 for x in range(9)]",
    "[x for x in range(10**9)]",
    "[x for x in range(10**400)]",
    "[x for x in np.arange(1e9)]",
    "[x for x in range(9999) for y in range(9999)]",
    "[[x for x in range(999)] for y in range(9999)]",
    "[0] * 10**9",
    "['a' * 10**9]",
    "[round(5, -10**9)]",
    "[1 << 10**10]",
    "[int('9' * 10**6)]",
    "np.linspace(0, 1, 10**9)",
    "sorted([3, 'a'])",
    "[" * 1000,
    "[" * 1000 + "]" * 1000,
    "[" * 150 + "]" * 150,
    "[1, " + "-" * 1000 + "1]",
    "[" + "not " * 400 + "1]",
    "[1" + " + 1" * 450 + "]",
    "[" + ", ".join(["1"] * 100_000) + "]",
    "[1/0]",
    "[float('nan')]",
    "[1e308 * 10]",
    "2 ** np.arange(-3, 3)",
    "[x for x in",
    "[1, 2",
    "[unknown]",
    "round(2.5)",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:40])
def test_hostile_text_is_refused_within_100_ms(text: str, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    text = text.replace("{mark}", str(mark))
    assert list_text.stands_for_list(text)
    began = time.process_time()
    with pytest.raises(ValueError, match=r"at column \d+|characters"):
        list_text.read(text)
    assert time.process_time() - began < 0.1
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        'dict(train="train", traineval="train")',
        "linear",
        "tiny/wrn_10_2",
        "timm/tfds/cifar10",
        "libsvm/covtype.multiclass",
        "poly_8",
        "step_1,2_0.1",
        "data/np.npz",
        "{train: train, test: test}",
        "train[:90%]",
        "2024-01-31",
        "",
    ],
)
def test_other_text_is_a_value(text: str) -> None:
    assert not list_text.stands_for_list(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2, foo]", "nothing is named foo, at column 8"),
        ("[1,\n 2,\n bar]", "nothing is named bar, at line 3, column 2"),
        ("[flot(x) for x in range(3)]", r"no function named flot \(did you mean 'float'\?\), at column 2"),
        ("[x for x in 2 ** np.arange(-2, 2)]", "write 2.0 for 2, at column 13"),
        ("[1 for x in 3]", "3 is not a list"),
    ],
)
def test_refusal_names_the_column(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list_text.read(text)
