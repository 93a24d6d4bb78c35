"""NumPy's values, there and back through a real checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy
from things import Thing


def there_and_back(folder: Path, said: list[str] | None = None, **state: Any) -> dict[str, Any]:
    first = Checkpointer(
        folder, policy=SavePolicy(every_steps=1), say=(said if said is not None else []).append
    )
    first.track(thing=Thing(**state))
    first.save(1, {}, wait=True)
    second, thing = Checkpointer(folder, policy=SavePolicy(every_steps=1), say=print), Thing()
    assert second.restore()
    second.track(thing=thing)
    return thing.state


DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8", "c16", ">f4", ">i8"]
ODD = ["U5", "S3", "M8[ns]", "m8[s]", "longdouble", "V7"]


@pytest.mark.parametrize("dtype", DTYPES + ODD)
def test_arrays_of_every_type_come_back(tmp_path: Path, np: Any, dtype: str) -> None:
    raw = np.arange(24 * np.dtype(dtype).itemsize, dtype="u1") % 2
    array = raw.view(dtype).reshape(2, 3, 4)
    found = there_and_back(tmp_path, a=array, scalar=array[1, 2, 3], empty=array[:0])
    assert found["a"].dtype == array.dtype and found["a"].tobytes() == array.tobytes()
    assert found["a"].shape == (2, 3, 4) and found["empty"].shape == (0, 3, 4)
    assert (
        type(found["scalar"]) is type(array[1, 2, 3])
        and found["scalar"].tobytes() == array[1, 2, 3].tobytes()
    )
    found["a"][0] = found["a"][1]  # it is ours to write to


def test_structured_arrays_orders_and_strides_come_back(tmp_path: Path, np: Any) -> None:
    table = np.zeros(3, dtype=[("x", "<f4"), ("name", "<U4")])
    table["x"] = [1, 2, 3]
    state = {
        "table": table,
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "strided": np.arange(10)[::-2],
        "nothing": np.array(3.5),
        "dtype": np.dtype("f4"),
    }
    found = there_and_back(tmp_path, **state)
    assert (found["table"] == table).all() and found["table"].dtype == table.dtype
    assert found["fortran"].flags.f_contiguous and (found["fortran"] == state["fortran"]).all()
    assert found["strided"].tolist() == [9, 7, 5, 3, 1] and found["nothing"].shape == ()
    assert found["dtype"] == np.dtype("f4")


def test_scalars_keep_their_types_even_those_that_subclass_pythons(tmp_path: Path, np: Any) -> None:
    values = {
        "f": np.float64(0.1),
        "i": np.int64(3),
        "b": np.bool_(True),
        "s": np.str_("ab"),
        "e": np.str_(""),
    }
    values["nan"] = np.float32("nan")
    found = there_and_back(tmp_path, **values)
    assert [type(found[name]) for name in values] == [type(value) for value in values.values()]
    assert found["f"] == values["f"] and np.isnan(found["nan"]) and found["s"] == "ab"


def test_an_array_that_occurs_twice_is_one_array_again(tmp_path: Path, np: Any) -> None:
    one = np.ones(4)
    found = there_and_back(tmp_path, a=one, b=[one])
    assert found["a"] is found["b"][0]


def test_arrays_of_objects_and_masked_ones_are_named(tmp_path: Path, np: Any) -> None:
    said: list[str] = []
    there_and_back(tmp_path, said, bad=np.array([object()]), masked=np.ma.array([1], mask=[True]))
    assert [line.partition(" (")[0] for line in said] == [
        "cannot be saved in checkpoints: thing.bad",
        "cannot be saved in checkpoints: thing.masked",
    ]


def test_both_kinds_of_generators_go_on_where_they_were(tmp_path: Path, np: Any) -> None:
    np.random.seed(1)
    own, old = np.random.default_rng(2), np.random.RandomState(3)
    first = Checkpointer(tmp_path, policy=SavePolicy(every_steps=1), say=print)
    first.track(own=own, old=old)
    first.save(1, {}, wait=True)
    expected = [np.random.rand(), own.random(), old.rand()]
    np.random.seed(9)
    second = Checkpointer(tmp_path, policy=SavePolicy(every_steps=1), say=print)
    assert second.restore()
    other, other_old = np.random.default_rng(0), np.random.RandomState(0)
    second.track(own=other, old=other_old)
    assert [np.random.rand(), other.random(), other_old.rand()] == expected
