"""Texts as numbers: bytes, or a tokenizer of transformers; one text per row, or cut into blocks whose
targets are the next tokens."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from hostler.errors import MissingError, SpecError
from hostler.train.config import Config
from hostler.train.data.split import Arrays
from hostler.train.library import need


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
        self.end = next((one for one in marks if one is not None), self.size - 1)
        pad = self._inside.pad_token_id
        self.padding = self.end if pad is None else pad

    def encode(self, text: str) -> list[int]:
        return list(self._inside(text, truncation=False, verbose=False)["input_ids"])


def coder(config: Config) -> Coder:
    return Tokenizer(config.tokenizer) if config.tokenizer else Bytes()


def rows(texts: Sequence[str], targets: torch.Tensor, code: Coder, length: int) -> Arrays:
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
