"""The format by hand, against damage; that others read it is shown in test_torch_state.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.errors import DamagedError
from hostler.sdk.checkpoint import safetensors
from hostler.sdk.checkpoint.safetensors import ALIGN, WIDTHS, TensorSlot

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@given(st.lists(st.tuples(st.sampled_from(sorted(WIDTHS)), SHAPES), max_size=8))
def test_data_has_no_holes_and_every_tensor_is_aligned(
    rows: list[tuple[str, tuple[int, ...]]],
) -> None:
    slots = [TensorSlot(f"t{n}", dtype, shape, lambda to: None) for n, (dtype, shape) in enumerate(rows)]
    made = safetensors.plan(slots)
    at = 0
    for slot, place in made.slots:
        assert place == at and place % WIDTHS[slot.dtype] == 0
        at += slot.size
    assert at == made.size and len(made.header) % ALIGN == 0
    found = safetensors.parse(memoryview(made.header + bytes(made.size)))
    assert {name: (one.dtype, one.shape) for name, one in found.items()} == {
        slot.name: (slot.dtype, slot.shape) for slot in slots
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1234",
        (1 << 60).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (3).to_bytes(8, "little") + b"{x}",
        (58).to_bytes(8, "little") + b'{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}     ',
        (58).to_bytes(8, "little") + b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}     ' + bytes(9),
    ],
)
def test_what_is_no_such_file_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedError):
        safetensors.parse(memoryview(data))
