"""The command line in this process, in an empty folder: quick, for verbs that start nothing."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hostler.cli import here, main


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Type = Callable[..., Answer]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Type]:
    """Types words, and `given` when a question comes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOSTLER_STORE", raising=False)
    here.project.cache_clear()

    def type_(*words: str, given: str = "") -> Answer:
        monkeypatch.setattr(sys, "argv", ["hostler", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        code = main._main()
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    yield type_
    here.project.cache_clear()
