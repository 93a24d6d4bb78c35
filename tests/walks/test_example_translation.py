"""examples/translation, as its README says it: two ranks, one of them killed, and then it translates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

import hostler
import servers
from example_world import EXAMPLES, Example
from hostler.backends.project_file import load_project
from hostler.backends.registry import BACKENDS

ENDLESS = "I think that the zebra is late, and " + "that the dog is at home, and " * 20 + "that is all."


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    made = Example(tmp_path, "translation")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(600)
def test_two_ranks_survive_losing_one_and_the_model_translates(example: Example) -> None:
    train, *others, translate = example.typed("On this machine")[:3]
    killer = Thread(target=example.interrupt, args=(1, "train_torch.py"), daemon=True)
    killer.start()
    answer = example.type(train)
    assert answer.code == 0, answer.out + answer.err
    assert example.attempts("small") == ("done", 2), answer.out
    for line in others:
        assert example.type(line).code == 0
    found = example.type(translate)
    assert found.code == 0, found.err
    assert f"```\n{found.out}```" in (example.folder / "README.md").read_text()
    assert not example.processes()

    [both, pull, from_folder] = example.typed("Trying a model")
    found = example.type(both)
    assert found.out.splitlines() == ["bo arbo juno ba kessa sekvu", "bo fluvo nokto la sella pinka vidu"], (
        found.err
    )
    assert example.type(pull).code == 0
    found = example.type(from_folder.replace(" --checkpoint", " 'the zebra hears a queen' --checkpoint"))
    known, unknown = found.out.splitlines()
    assert found.code == 0 and known == "bo arbo juno ba kessa sekvu" and unknown, found.err


@pytest.mark.soak
def test_the_weights_are_those_of_a_run_that_nobody_disturbed(example: Example) -> None:
    safetensors = servers.library("safetensors.torch")
    train, *_ = example.typed("On this machine")
    killer = Thread(target=example.interrupt, args=(1, "train_torch.py"), daemon=True)
    killer.start()
    assert example.type(train).code == 0
    assert example.type(train.replace("--name small", "--name calm")).code == 0
    assert example.attempts("small") == ("done", 2) and example.attempts("calm") == ("done", 1)
    ends = []
    for name in ("small", "calm"):
        assert example.type(f"hostler pull {name} --checkpoint --to {name}").code == 0
        last = sorted((example.folder / name).glob("checkpoint/step-*/tensors-0000.safetensors"))[-1]
        held = safetensors.load_file(last)
        ends.append({key: one for key, one in held.items() if key.startswith(("model.", "optimizer."))})
    small, calm = ends
    assert calm and small.keys() == calm.keys()
    assert all(bool((small[key] == calm[key]).all()) for key in calm)


@pytest.mark.timeout(300)
def test_one_process_trains_by_hand(example: Example) -> None:
    *_, make, train = example.typed("On this machine")
    lost = example.type("python -c \"import words; words.read('')\"")
    assert lost.code == 1 and "python make_data.py" in lost.err and "Traceback" not in lost.err
    assert example.type(make).code == 0
    answer = example.type(train)
    assert answer.code == 0, answer.err
    assert example.in_state("done") == 1


@pytest.mark.timeout(600)
def test_any_two_columns_train_a_model_that_answers(example: Example) -> None:
    """One epoch of the README's twelve: it answers, if not well."""
    train, ask = example.typed("Any two columns")
    shorter = train.replace("--epochs 12", "--epochs 1")
    answer = example.type(shorter, timeout=500)
    assert shorter != train and answer.code == 0, answer.err
    found = example.type(f'{ask} "{ENDLESS}"')
    assert found.code == 0 and len(found.out.splitlines()) == 3, found.err


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_any_two_columns_train_a_model_for_unknown_words(example: Example) -> None:
    train, ask = example.typed("Any two columns")
    answer = example.type(train, timeout=500)
    assert answer.code == 0, answer.err
    [row] = hostler.frame(str(example.store)).to_dict("records")
    assert row["accuracy.best"] > 0.5
    found = example.type(f'{ask} "{ENDLESS}"')
    known, *unknown = found.out.splitlines()
    assert found.code == 0 and known == "Der Hund sieht das Haus.", found.err
    assert len(unknown) == 2 and all(unknown)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"one column\n", "line 1: not two columns"),
        (b"a\tb\n\nc\t\n", "line 3: not two columns"),
        (b"\xff\xfe\x00", "is not a text file in UTF-8"),
        (b"a\tb\n", "too few"),
    ],
)
def test_file_without_two_columns_is_refused_in_one_line(example: Example, content: bytes, said: str) -> None:
    (example.folder / "mine.tsv").write_bytes(content)
    answer = example.type("python -c \"import words; words.read('mine.tsv')\"")
    assert answer.code == 1 and said in answer.err and len(answer.err.splitlines()) == 1


def test_vocabulary_spells_what_it_never_saw(example: Example) -> None:
    program = (
        "v = words.Vocabulary.learned(['the dog'] * 9, 300); print(v.sentence(v.numbers('Zürich, 東京 🙂')))"
    )
    answer = example.type(f'python -c "import words; {program}"')
    assert answer.out.strip() == "Zürich, 東京 🙂", answer.err


def test_sweep_plans_and_every_backend_has_an_editable_fleet(example: Example) -> None:
    [plan] = example.typed("A search")
    answer = example.type(plan)
    assert answer.code == 0 and "6" in answer.out, answer.err
    project = load_project(EXAMPLES / "translation" / "hostler.yaml")
    assert {fleet.backend for fleet in project.fleets.values()} == set(BACKENDS)


def test_without_a_run_try_says_what_to_type(example: Example) -> None:
    answer = example.type("python try.py 'the king sees a house'")
    assert answer.code == 1 and "hostler run" in answer.err and "Traceback" not in answer.err
