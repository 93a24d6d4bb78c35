"""Hugging Face's Trainer: keeps its checkpoints in the run's folder and resumes from complete ones.

    callback = HostlerCallback(run)
    args = TrainingArguments(output_dir=callback.output_dir, save_strategy="steps", save_steps=500, …)
    Trainer(…, args=args, callbacks=[callback]).train(resume_from_checkpoint=callback.checkpoint)

The Trainer saves weights, optimiser, scheduler, random states and its place in the data by itself. When a
checkpoint is complete the callback marks it, with names and sizes of its files: then it is brought to the
store at once. One without its mark, or without a file, was being written or removed when the process was
killed; it is removed before the Trainer goes on.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hostler.records.run import handoff
from hostler.sdk.run import Run

WHOLE = "hostler-whole"


class HostlerCallback(TrainerCallback):
    def __init__(self, run: Run) -> None:
        self._run = run
        self._folder = run.checkpoint_dir / "trainer"
        self._folder.mkdir(parents=True, exist_ok=True)
        run._survive_kills(marked={self._folder.name: WHOLE})
        self.checkpoint = self._newest()

    @property
    def output_dir(self) -> str:
        """The value for TrainingArguments' output_dir."""
        return str(self._folder)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        numbers = {k: v for k, v in (logs or {}).items() if isinstance(v, (int, float))}
        if numbers and state.is_world_process_zero:
            self._run.log(numbers, step=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._run.should_stop:
            control.should_save = control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = self._folder / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            handoff.write(folder / WHOLE, {"files": _sizes(folder)})

    def _newest(self) -> str | None:
        """The newest whole checkpoint; what is not whole is removed."""
        paths: dict[int, Path] = {}
        for path in self._folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
            number = path.name.rpartition("-")[2]
            if number.isdigit() and _is_complete(path):
                paths[int(number)] = path
            elif self._run.rank == 0:
                shutil.rmtree(path, ignore_errors=True)
        return str(paths[max(paths)]) if paths else None


def _sizes(folder: Path) -> dict[str, int]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != WHOLE)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _is_complete(folder: Path) -> bool:
    """Whether it has its mark, and all files that this names; marks of earlier versions name none."""
    if not (folder / WHOLE).exists():
        return False
    named = (handoff.read(folder / WHOLE) or {}).get("files", {})
    return dict(named).items() <= _sizes(folder).items()
