"""torch's values, there and back through a real checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.errors import UsageError
from hostler.sdk.checkpoint import torch_state
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy
from things import Thing


def save(folder: Path, said: list[str] | None = None, **objects: Any) -> None:
    made = Checkpointer(
        folder, policy=SavePolicy(every_steps=1), say=(said if said is not None else []).append
    )
    made.track(**objects)
    made.save(1, {}, wait=True)
    made.close()


def load(folder: Path, **objects: Any) -> None:
    made = Checkpointer(folder, policy=SavePolicy(every_steps=1), say=print)
    assert made.restore()
    made.track(**objects)


def there_and_back(folder: Path, said: list[str] | None = None, **state: Any) -> dict[str, Any]:
    save(folder, said, thing=Thing(**state))
    thing = Thing()
    load(folder, thing=thing)
    return thing.state


DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_type_return_and_other_tools_read_them(
    tmp_path: Path, torch: Any, dtype: str
) -> None:
    kind = getattr(torch, dtype)
    raw = torch.randint(0, 2, (6 * torch.empty(0, dtype=kind).element_size(),), dtype=torch.uint8)
    tensor = raw.view(kind).reshape(2, 3)
    found = there_and_back(tmp_path, a=tensor, turned=tensor.t().contiguous().t(), none=tensor[:0])
    for name, wanted in (("a", tensor), ("turned", tensor), ("none", tensor[:0])):
        assert found[name].dtype is kind and found[name].shape == wanted.shape
        assert bytes_of(torch, found[name]) == bytes_of(torch, wanted)
    try:
        from safetensors.torch import load_file
    except ImportError:
        servers.missing("safetensors is not installed")
    read = load_file(next(tmp_path.glob("*/*.safetensors")))
    assert bytes_of(torch, read["thing.a"]) == bytes_of(torch, tensor)


def bytes_of(torch: Any, tensor: Any) -> list[int]:
    return tensor.contiguous().view(-1).view(torch.uint8).tolist() if tensor.numel() else []


def test_a_tensor_that_occurs_twice_is_one_tensor_again(tmp_path: Path, torch: Any) -> None:
    one = torch.randn(3)
    found = there_and_back(tmp_path, a=one, b={"c": (one,)})
    assert found["a"] is found["b"]["c"][0] and torch.equal(found["a"], one)


def test_tensors_that_share_memory_share_it_again(tmp_path: Path, torch: Any) -> None:
    flat = torch.arange(12.0)
    state = {"whole": flat, "row": flat[4:8], "turned": flat.view(3, 4).t(), "bits": flat.view(torch.int32)}
    found = there_and_back(tmp_path, apart=flat[:0], **state)
    assert all(torch.equal(found[name], tensor) for name, tensor in state.items())
    found["whole"][5] = 99.0
    assert found["row"][1] == 99.0 and found["turned"][1, 1] == 99.0
    assert found["turned"].stride() == (1, 4)


def test_neighbours_in_one_block_of_memory_are_saved_apart(tmp_path: Path, torch: Any) -> None:
    flat = torch.arange(10.0)
    found = there_and_back(tmp_path, a=flat[:4], b=flat[4:])
    assert torch.equal(found["a"], flat[:4]) and torch.equal(found["b"], flat[4:])
    assert next(tmp_path.glob("*/*.safetensors")).stat().st_size < 2 * 4096 + 40 + 10_000


def test_parameters_gradients_flags_sizes_types_and_devices_come_back(tmp_path: Path, torch: Any) -> None:
    state = {
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "wants": torch.ones(2, requires_grad=True),
        "size": torch.Size([2, 3]),
        "dtype": torch.bfloat16,
        "device": torch.device("cpu"),
        "layout": torch.channels_last,
        "conj": torch.tensor([1 + 2j]).conj(),
    }
    found = there_and_back(tmp_path, **state)
    assert type(found["parameter"]) is torch.nn.Parameter and found["parameter"].requires_grad
    assert found["wants"].requires_grad and type(found["size"]) is torch.Size
    assert (found["size"], found["dtype"], found["device"], found["layout"]) == (
        (2, 3),
        torch.bfloat16,
        torch.device("cpu"),
        torch.channels_last,
    )
    assert torch.equal(found["conj"], state["conj"].resolve_conj())


def test_tensors_that_cannot_be_kept_are_named(tmp_path: Path, torch: Any) -> None:
    said: list[str] = []
    there_and_back(tmp_path, said, sparse=torch.eye(2).to_sparse(), meta=torch.empty(2, device="meta"))
    assert [line.partition(" (")[0] for line in said] == [
        "cannot be saved in checkpoints: thing.sparse",
        "cannot be saved in checkpoints: thing.meta",
    ]


def test_tied_weights_are_written_once_and_stay_tied(tmp_path: Path, torch: Any) -> None:
    def make() -> Any:
        model = torch.nn.ModuleDict(
            {"in": torch.nn.Embedding(5, 3), "out": torch.nn.Linear(3, 5, bias=False)}
        )
        model["out"].weight = model["in"].weight
        return model

    first, second = make(), make()
    save(tmp_path, model=first)
    load(tmp_path, model=second)
    assert torch.equal(second["in"].weight, first["in"].weight)
    assert second["out"].weight is second["in"].weight
    names = __import__("json").loads(next(tmp_path.glob("*/*.safetensors")).read_bytes()[8:4096].strip())
    assert [name for name in names if name.startswith("model")] == ["model.in.weight"]


def test_optimisers_schedulers_and_scalers_go_on_to_the_bit(tmp_path: Path, torch: Any) -> None:
    def make() -> tuple[Any, ...]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
        optimizer = torch.optim.AdamW(model.parameters(), 0.1)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=20)
        return model, optimizer, scheduler, torch.amp.GradScaler("cpu")

    def step(model: Any, optimizer: Any, scheduler: Any, scaler: Any) -> None:
        optimizer.zero_grad()
        scaler.scale(model(torch.randn(8, 4)).square().sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()

    names = ("model", "optimizer", "scheduler", "scaler")
    first = make()
    for _ in range(3):
        step(*first)
    save(tmp_path, **dict(zip(names, first, strict=True)))
    for _ in range(3):
        step(*first)
    second = make()
    load(tmp_path, **dict(zip(names, second, strict=True)))
    for _ in range(3):
        step(*second)
    assert all(map(torch.equal, first[0].state_dict().values(), second[0].state_dict().values()))
    assert first[2].state_dict() == second[2].state_dict() and first[3].state_dict() == second[3].state_dict()


def test_a_checkpoint_of_another_model_says_which_keys(tmp_path: Path, torch: Any) -> None:
    save(tmp_path, model=torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2)}))
    other = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 3), "c": torch.nn.Linear(2, 2)})
    before = other["a"].weight.clone()
    with pytest.raises(UsageError) as error:
        load(tmp_path, model=other)
    assert error.value.message == (
        "the checkpoint does not fit model: missing c.weight, c.bias; unexpected b.weight, b.bias; "
        "shapes differ: a.weight is (2, 2) in the checkpoint and (3, 2) here, "
        "a.bias is (2,) in the checkpoint and (3,) here"
    )
    assert torch.equal(other["a"].weight, before), "nothing was loaded"


def test_an_optimiser_of_another_model_is_refused_by_name(tmp_path: Path, torch: Any) -> None:
    save(tmp_path, optimizer=torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), 0.1))
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    with pytest.raises(UsageError, match="does not fit optimizer"):
        load(tmp_path, optimizer=torch.optim.SGD(other.parameters(), 0.1))


def test_what_is_restored_does_not_hang_on_the_file(tmp_path: Path, torch: Any) -> None:
    found = there_and_back(tmp_path, a=torch.arange(5000))
    path = next(tmp_path.glob("*/*.safetensors"))
    path.write_bytes(bytes(path.stat().st_size))
    assert torch.equal(found["a"], torch.arange(5000))


def test_generators_of_torch_go_on_where_they_were(tmp_path: Path, torch: Any) -> None:
    own = torch.Generator().manual_seed(4)
    torch.manual_seed(2)
    save(tmp_path, own=own)
    expected = [torch.rand(1), torch.rand(1, generator=own)]
    other = torch.Generator()
    torch.manual_seed(77)
    load(tmp_path, own=other)
    assert [torch.rand(1), torch.rand(1, generator=other)] == expected


def test_spare_block_holds_every_tensor_in_the_order_of_the_data(torch: Any) -> None:
    tensors = [
        torch.arange(6.0).view(2, 3).t(),
        torch.arange(3, dtype=torch.bfloat16),
        torch.zeros(0),
        torch.tensor([True, False, True]),
        torch.ones(2, dtype=torch.complex128),  # written as bytes, wherever they lie
    ]
    places = [0, 24, 30, 40, 43]  # at 30 lies what is not of this device
    spare = torch.zeros(200, dtype=torch.uint8)
    runs = torch_state.copied_aside(spare, list(zip(tensors, places, strict=True)))
    data = bytearray(100)
    for begin, at, size in runs:
        data[at : at + size] = bytes(spare[begin : begin + size].tolist())
    for tensor, at in zip(tensors, places, strict=True):
        found = data[at : at + tensor.numel() * tensor.element_size()]
        assert bytes(found) == bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())
    assert [run[1:] for run in runs] == [(0, 30), (40, 3), (43, 32)], "neighbours go out at once"
