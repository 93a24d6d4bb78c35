"""The TensorFlow variant of examples/translation: two workers, one of them killed, and then it translates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from example_world import Example
from gang_world import needs

DOSE = """{sentences: 300, epochs: 24, width: 32, layers: 1, dropout: 0,
  batch_size: 16, lr: 0.01, warmup: 30, save_every: epoch}"""


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    made = Example(tmp_path, "translation")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(600)
def test_two_workers_train_with_tensorflow_through_the_loss_of_one(example: Example) -> None:
    needs("tensorflow")
    whole, short = "parameters:\n  epochs: 20\n", f"parameters: {DOSE}\n"
    written = (example.folder / "tensorflow.yaml").read_text()
    assert whole in written
    example.write("tensorflow.yaml", written.replace(whole, short))
    killer = Thread(target=example.interrupt, args=(1, "train_tensorflow.py"), daemon=True)
    killer.start()
    [sweep] = example.typed("TensorFlow")
    answer = example.type(sweep, timeout=400)
    assert answer.code == 0, answer.out + answer.err
    waited = example.run("wait", "tensorflow", timeout=300)
    assert waited.code == 0, waited.err
    assert example.attempts("tensorflow") == ("done", 2)
    found = example.type("python try.py 'the apple hears a loud queen'")
    assert found.out == "la pomma ba sella klama audu\n", found.err
