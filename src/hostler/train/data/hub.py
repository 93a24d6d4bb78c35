"""`hf/NAME`: Hugging Face datasets: a folder or file on this disk, or a name that is fetched where there is
a network. Pictures with classes, texts with classes, or texts alone."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from hostler.errors import DamagedError, MissingError, SpecError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data import pictures
from hostler.train.data.lock import alone
from hostler.train.data.sources import wanted
from hostler.train.data.split import TEXT, Arrays, Data
from hostler.train.library import need

FORMATS = {"csv": "csv", "json": "json", "jsonl": "json", "parquet": "parquet", "txt": "text"}
LABELS = ("label", "labels", "target", "class", "fine_label")
TEXTS = ("text", "sentence", "content", "review", "question")


def load(config: Config, name: str) -> Data:
    datasets = need("datasets", "datasets", config.dataset)
    splits = _splits(datasets, name, config)
    features = splits["train"].features
    image = next((one for one, kind in features.items() if type(kind).__name__ == "Image"), None)
    if image is not None and config.data_input in (None, image):
        return _of_pictures(splits, image, _label(features, config), config)
    inputs = _inputs(features, config)
    code = coder(config)
    if config.model.startswith("hf/causal/"):
        made = {n: blocks(_texts(s, inputs), code, config.text_length, n) for n, s in splits.items()}
        return Data(made, (config.text_length,), code.size, TEXT, vocabulary=code.size)
    label = _label(features, config)
    targets, classes = _targets(splits, label, config)
    rows = {n: token_rows(_texts(s, inputs), targets[n], code, config.text_length) for n, s in splits.items()}
    size, padding = code.size, code.padding
    return Data(rows, (config.text_length,), len(classes), TEXT, None, classes, size, padding)


class Pairs:
    """(picture, class) by index."""

    def __init__(self, rows: Any, image: str, targets: torch.Tensor) -> None:
        self._rows, self._image, self._targets = rows, image, targets

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._rows[index][self._image], int(self._targets[index])


def _of_pictures(splits: Mapping[str, Any], image: str, label: str, config: Config) -> Data:
    targets, classes = _targets(splits, label, config)
    if not classes:
        raise SpecError(
            f"{config.dataset}: {label} does not hold classes", hint="data_target: the column of the class"
        )
    return pictures.build({n: Pairs(s, image, targets[n]) for n, s in splits.items()}, classes, config)


def _splits(datasets: Any, name: str, config: Config) -> dict[str, Any]:
    found = _opened(datasets, name, config)
    if isinstance(found, datasets.Dataset):
        found = {"train": found}
    for theirs in wanted(config).values():
        if theirs not in found:
            known = list(found)
            raise SpecError(
                f"{config.dataset} has no split {theirs!r}",
                did_you_mean(theirs, known, f"it has {', '.join(known)}; null leaves one out"),
            )
        if not len(found[theirs]):
            raise SpecError(f"split {theirs!r} of {config.dataset} has no examples")
    return {ours: found[theirs] for ours, theirs in wanted(config).items()}


def _opened(datasets: Any, name: str, config: Config) -> Any:
    path = next((p for p in (Path(config.data_dir, name), Path(name)) if p.exists()), None)
    cache = Path(config.data_dir, ".hf")
    kept = str(cache) if os.access(next(p for p in cache.absolute().parents if p.exists()), os.W_OK) else None
    try:
        if path is not None and ((path / "dataset_dict.json").exists() or (path / "state.json").exists()):
            return datasets.load_from_disk(str(path))
        with alone(cache / ".lock"):
            if path is not None:
                kind, files = _files(path, config)
                return datasets.load_dataset(kind, data_files=files, cache_dir=kept)
            if not config.data_download:
                raise MissingError(
                    f"{config.dataset} is not in {config.data_dir}", hint="hf/PATH, in data_dir"
                )
            repository, _, variant = name.partition(":")
            return datasets.load_dataset(repository, variant or None, cache_dir=kept)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        first = _first(error)
        if path is not None:
            raise DamagedError(f"{config.dataset}: {first}") from None
        raise MissingError(
            f"{config.dataset} cannot be fetched: {first}", hint=f"put it into {config.data_dir}"
        ) from None


def _first(error: BaseException) -> str:
    """The line that says why: the library wraps it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).partition("\n")[0]


def _files(path: Path, config: Config) -> tuple[str, dict[str, str]]:
    """The reader, and a file for each split: `<split>.csv` and the like of a folder, or the one file."""
    if path.is_file():
        paths = {"train": path}
    else:
        paths = {one.stem: one for one in sorted(path.iterdir()) if one.suffix[1:] in FORMATS}
    if not paths:
        known = ", ".join(FORMATS)
        raise SpecError(f"{path} holds no data set", hint=f"save_to_disk, or <split>.EXT with {known}")
    ends = {one.suffix[1:] for one in paths.values()}
    kinds = {FORMATS.get(end, "") for end in ends}
    if len(kinds) > 1 or "" in kinds:
        raise SpecError(
            f"{path}: files of the kinds {', '.join(sorted(ends))}", hint="one kind for all splits"
        )
    return kinds.pop(), {name: str(one) for name, one in paths.items()}


def _inputs(features: Mapping[str, Any], config: Config) -> list[str]:
    strings = [
        name for name, kind in features.items() if getattr(kind, "dtype", None) in ("string", "large_string")
    ]
    asked = [word.strip() for word in config.data_input.split(",")] if config.data_input else []
    for one in asked:
        if one not in features:
            raise SpecError(
                f"{config.dataset} has no column {one!r}", did_you_mean(one, features, ", ".join(features))
            )
    if asked:
        return asked
    if not strings:
        raise SpecError(f"{config.dataset} has neither pictures nor texts", hint=", ".join(features))
    return [next((text for text in TEXTS if text in strings), strings[0])]


def _texts(rows: Any, columns: list[str]) -> list[str]:
    return ["\n".join(map(str, parts)) for parts in zip(*(rows[column] for column in columns), strict=True)]


def _label(features: Mapping[str, Any], config: Config) -> str:
    if config.data_target is not None:
        if config.data_target not in features:
            hint = did_you_mean(config.data_target, features, ", ".join(features))
            raise SpecError(f"{config.dataset} has no column {config.data_target!r}", hint)
        return config.data_target
    marked = [name for name, kind in features.items() if type(kind).__name__ == "ClassLabel"]
    found = [*(label for label in LABELS if label in features), *marked]
    if not found:
        raise SpecError(
            f"{config.dataset} has no column of classes",
            hint=f"data_target: one of {', '.join(features)}; or model: hf/causal/… for the next token",
        )
    return found[0]


def _targets(
    splits: Mapping[str, Any], label: str, config: Config
) -> tuple[dict[str, torch.Tensor], tuple[str, ...]]:
    """Numbers by split, and the names of the classes; of real numbers no names."""
    columns = {name: list(one[label]) for name, one in splits.items()}
    every = [value for column in columns.values() for value in column]
    if any(value is None for value in every) or not every:
        raise DamagedError(f"{config.dataset} has examples without {label}")
    if all(isinstance(value, float) for value in every):
        return {name: torch.tensor(one) for name, one in columns.items()}, ()
    names = getattr(splits["train"].features[label], "names", None)
    if names is None:
        known = sorted(set(every))
        number = {value: place for place, value in enumerate(known)}
        columns = {name: [number[value] for value in one] for name, one in columns.items()}
        names = [str(value) for value in known]
    if any(value < 0 for column in columns.values() for value in column):
        raise SpecError(f"{config.dataset}: a split has examples without a class", hint="null leaves one out")
    return {name: torch.tensor(one, dtype=torch.long) for name, one in columns.items()}, tuple(names)


# Texts as numbers: bytes, or a tokenizer of transformers; one text per row, or cut into blocks whose
# targets are the next tokens.


class Coder(Protocol):
    @property
    def size(self) -> int:
        """Tokens that there are."""

    @property
    def padding(self) -> int:
        """The token that fills up short texts."""

    @property
    def end(self) -> int:
        """The token between two texts."""

    def encode(self, text: str) -> list[int]: ...


@dataclass(frozen=True)
class Bytes:
    """UTF-8, and one more for the end."""

    size: int = 257
    padding: int = 256
    end: int = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())


class Tokenizer:
    """A tokenizer of transformers, from a folder, or by name where it can be fetched."""

    def __init__(self, name: str) -> None:
        transformers = need("transformers", "transformers", f"tokenizer {name}")
        try:
            self._inside: Any = transformers.AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError, KeyError) as error:
            first = str(error).strip().partition("\n")[0]
            raise MissingError(f"no tokenizer named {name!r}: {first}", hint="tokenizer: a folder") from None
        self.size = len(self._inside)
        marks = (self._inside.eos_token_id, self._inside.sep_token_id, self._inside.pad_token_id)
        self.end = next((mark for mark in marks if mark is not None), self.size - 1)
        pad = self._inside.pad_token_id
        self.padding = self.end if pad is None else pad

    def encode(self, text: str) -> list[int]:
        return list(self._inside(text, truncation=False, verbose=False)["input_ids"])


def coder(config: Config) -> Coder:
    return Tokenizer(config.tokenizer) if config.tokenizer else Bytes()


def token_rows(texts: Sequence[str], targets: torch.Tensor, code: Coder, length: int) -> Arrays:
    """Each text cut or filled up to the same length."""
    x = torch.full((len(texts), length), code.padding, dtype=torch.long)
    for place, text in enumerate(texts):
        some = code.encode(text)[:length]
        x[place, : len(some)] = torch.tensor(some, dtype=torch.long)
    return Arrays(x, targets)


def blocks(texts: Iterable[str], code: Coder, length: int, what: str) -> Arrays:
    """All texts one after another, in pieces of `length` and what follows each token; no piece is short."""
    found = array("q")
    for text in texts:
        found.extend(code.encode(text))
        found.append(code.end)
    stream = torch.tensor(found, dtype=torch.long)
    count = (len(stream) - 1) // length
    if count < 1:
        raise SpecError(
            f"{what} has {len(stream)} tokens, too few for one piece of {length}", hint="text_length"
        )
    used = stream[: count * length + 1]
    return Arrays(used[:-1].reshape(count, length).clone(), used[1:].reshape(count, length).clone())
