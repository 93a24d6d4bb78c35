"""The files of a training, with the names people know: spec.yaml, config.yaml, stats.csv, training.log,
done."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from hostler.errors import MachineError
from hostler.train import configfile
from hostler.train.config import Config

_FORMAT = "%(asctime)s %(message)s"


class RunFolder:
    """Rank 0 writes; the others' is silent."""

    def __init__(self, path: Path, config: Config, *, leads: bool) -> None:
        self.path, self._leads = path, leads
        self._log = logging.getLogger(f"hostler.train.{id(self)}")
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        if not leads:
            self._log.addHandler(logging.NullHandler())
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / "done").unlink(missing_ok=True)  # of a training before this one
            self._log.addHandler(logging.FileHandler(path / "training.log"))
        except OSError as error:
            raise MachineError(f"{path} cannot be written: {error.strerror}", hint="output_dir") from None
        if config.log_to_stdout:
            self._log.addHandler(logging.StreamHandler(sys.stdout))
        for handler in self._log.handlers:
            handler.setFormatter(logging.Formatter(_FORMAT))

    @property
    def stats(self) -> Path:
        return self.path / "stats.csv"

    def say(self, text: str) -> None:
        self._log.info(text)

    def write(self, name: str, config: Config) -> None:
        self._put(name, configfile.dump(config))

    def save(self, name: str, model: torch.nn.Module) -> None:
        """Weights as safetensors, whole or not at all; tied ones once."""
        if not self._leads:
            return
        from safetensors.torch import save_model

        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        save_model(model, str(part))
        os.replace(part, path)

    def done(self, row: Mapping[str, float]) -> None:
        self._put("done", "".join(f"{name}: {value}\n" for name, value in row.items()))

    def close(self) -> None:
        for handler in list(self._log.handlers):
            handler.close()
            self._log.removeHandler(handler)

    def _put(self, name: str, text: str) -> None:
        if not self._leads:
            return
        part = self.path / f".{name}.{os.getpid()}"
        part.write_text(text)
        os.replace(part, self.path / name)
