"""The examples, as their READMEs say them: every command of an `sh` block, typed in order.

Sections in `LONG` are of the long dose; all others are typed each time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hostler
from cli_world import eventually
from example_world import EXAMPLES, Example

LONG = {
    ("survive", "At any moment"),
    ("linear_grid", "All of them"),
    ("image_grid", "All of them"),
    ("gpt", "Two workers, here"),
    ("digits_search", "The search"),
    ("census", "Search, then evaluate the best"),
}
ELSEWHERE = {"translation"}  # tests/walks/test_example_translation.py
TO_COPY = {"fleets"}  # tests/unit/test_docs_made.py


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Example]:
    made = Example(tmp_path, request.param)
    try:
        yield made
    finally:
        made.close()


def names() -> list[str]:
    return sorted({path.parent.name for path in EXAMPLES.glob("*/README.md")} - ELSEWHERE - TO_COPY)


def titles(name: str) -> list[str]:
    """Headings of its README that have commands to type."""
    parts = re.split(r"^## (.+)$", (EXAMPLES / name / "README.md").read_text(), flags=re.MULTILINE)
    return [title for title, body in zip(parts[1::2], parts[2::2], strict=True) if "\n```sh\n" in body]


def typed(example: Example, title: str) -> str:
    """Everything that the commands under a heading printed."""
    said = ""
    for line in example.typed(title):
        answer = example.type(line, timeout=1200)
        assert answer.code == 0, f"{line}\n{answer.out}\n{answer.err}\n{example.run('errors').out}"
        said += answer.out
    return said


def hello(example: Example, said: str) -> None:
    assert example.in_state("done") == 7
    assert '{"epoch": 20, "loss": 0.0' in said and re.search(r"hello/\d  loss=\d\.\d+e-3", said)


def existing_script(example: Example, said: str) -> None:
    assert example.in_state("done") == 4
    assert len(list(example.folder.glob("models/*/checkpoint/last.pkl"))) == 4
    frame = hostler.frame(str(example.store), "sine")
    assert set(frame["train_loss.curve"].map(len)) == {30}
    assert frame.groupby("learning-rate")["train_loss"].min().tolist() == sorted(
        frame.groupby("learning-rate")["train_loss"].min(), reverse=True
    )


def survive(example: Example, said: str) -> None:
    frame = hostler.frame(str(example.store), "survive")
    assert set(frame["state"]) == {"done"}
    assert frame.sort_values("cut_power_at")["attempts"].tolist() == [1, 2, 2]
    assert frame["error"].nunique() == 1
    assert frame["error.curve"].map(lambda curve: curve.tobytes()).nunique() == 1


def digits_search(example: Example, said: str) -> None:
    [row] = hostler.frame(str(example.store)).to_dict("records")
    assert row["state"] == "done" and row["val_accuracy.best"] > 0.85


def digits_in_full(example: Example, said: str) -> None:
    frame = hostler.frame(str(example.store), "digits")
    assert set(frame["state"]) == {"done"} and len(frame) == 3
    assert frame["val_accuracy.best"].max() > 0.85
    assert (example.folder / "model/outputs/params.pt").is_file()


def linear_grid(example: Example, said: str) -> None:
    for grid in ("linear: 108 runs", "larger-rates: 108 runs", "tracked: 54 runs"):
        assert grid in said
    frame = hostler.frame(str(example.store))
    assert list(frame["state"]) == ["done", "done"]
    assert frame["test/av/accuracy"].max() > 0.6 and frame["traineval/av/accuracy"].max() > 0.5


def image_grid(example: Example, said: str) -> None:
    assert "8 new" in said
    frame = hostler.frame(str(example.store))
    assert set(zip(frame["state"], frame["model"], strict=True)) == {
        ("done", "linear"),
        ("done", "tiny/lenet"),
    }
    assert frame["test/last/accuracy"].min() > 0.3


def census(example: Example, said: str) -> None:
    trained, evaluated, *drawn = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert trained["train_accuracy"] > 0.75 and evaluated["accuracy"] > 0.75
    assert [line["step"] for line in drawn] == [1, 2, 3]
    assert drawn[-1]["accuracy"] == max(line["cv_accuracy"] for line in drawn) > 0.75
    for folder in ("models", "searched"):
        [left] = (example.folder / folder).iterdir()
        assert re.fullmatch(r"census-\d{8}_\d{6}", left.name)


def census_in_full(example: Example, said: str) -> None:
    frame = hostler.frame(str(example.store), "census")
    assert set(frame["state"]) == {"done"} and len(frame) == 5
    [evaluated] = [json.loads(line) for line in said.splitlines() if line.startswith('{"')]
    assert evaluated["accuracy"] > 0.8
    table = (example.folder / "adult.sample.csv").read_text().replace("K\n", "K.\n")  # as adult.test has it
    (example.folder / "adult.test").write_text("|1x3 Cross validator\n" + table)
    again = example.type(
        "python train.py --mode evaluate --model-output-path model/outputs --census-data-path adult.test"
    )
    assert json.loads(again.out) == evaluated


def two_stage(example: Example, said: str) -> None:
    frame = hostler.frame(str(example.store))
    assert set(frame["state"]) == {"done"} and len(frame) == 5
    first = frame[frame["sweep"] == "spectrogram"]
    best = first.loc[first["error"].idxmin(), "run"]
    taken = [path.read_text() for path in example.store.glob("runs/*signal*/inputs.json")]
    assert len(taken) == 2 and all(best in text for text in taken)


def gpt(example: Example, said: str) -> None:
    assert said.startswith('"""A sma')  # it goes on from the first letters of its own source
    [row] = hostler.frame(str(example.store)).to_dict("records")
    assert row["state"] == "done" and len(row["loss.curve"]) == 20
    assert row["loss"] < row["loss.curve"][0]


CHECKS: dict[str, Callable[[Example, str], None]] = {
    "hello": hello,
    "existing_script": existing_script,
    "survive": survive,
    "digits_search": digits_search,
    "linear_grid": linear_grid,
    "image_grid": image_grid,
    "census": census,
    "two_stage": two_stage,
    "gpt": gpt,
}


IN_FULL: dict[str, Callable[[Example, str], None]] = {
    "digits_search": digits_in_full,
    "census": census_in_full,
    "linear_grid": lambda example, said: whole(example, "linear", 108),
    "image_grid": lambda example, said: whole(example, "shapes", 8),
}


def whole(example: Example, sweep: str, count: int) -> None:
    frame = hostler.frame(str(example.store), sweep)
    assert set(frame["state"]) == {"done"} and len(frame) == count


@pytest.fixture(autouse=True)
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("example", names(), indirect=True)
def test_the_commands_of_its_readme_do_what_it_says(example: Example) -> None:
    name = example.folder.name
    said = "".join(typed(example, title) for title in titles(name) if (name, title) not in LONG)
    CHECKS[name](example, said)
    eventually(lambda: not example.processes())  # a worker leaves a moment after its last run


@pytest.mark.soak
@pytest.mark.parametrize(("example", "title"), sorted(LONG), indirect=["example"])
def test_the_long_commands_of_its_readme_end_well(example: Example, title: str) -> None:
    said = typed(example, title)
    IN_FULL.get(example.folder.name, lambda *_: None)(example, said)
    assert not example.processes()


def test_readme_works_from_the_first_run_to_a_sweeps_best(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "README.md").read_text()
    world = Example(tmp_path, "hello")
    try:
        world.write("train.py", TRAIN_WITH_WIDTH)
        world.write(
            "sweep.yaml", re.findall(r"^```yaml\n(# sweep.yaml.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
        )
        for title in ("First run", "Sweeps"):
            for line in commands(page, title):
                if line == "hostler sweep sweep.yaml":
                    done = world.answered("sweep", "sweep.yaml", given="y\n")
                elif "--watch" in line:
                    done = world.run("wait", "sweep")
                else:
                    done = world.type(line)
                assert done.code == 0, (line, done.out, done.err)
        assert world.in_state("done") == 8 and "best sweep/" in world.run("status").out
    finally:
        world.close()


TRAIN_WITH_WIDTH = """
import argparse, json

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--width", type=int, default=64)
given = parser.parse_args()
print(json.dumps({"step": 1, "acc": given.lr * given.width}), flush=True)
"""


def commands(page: str, title: str) -> list[str]:
    """What is typed under a heading, without what is said of it."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
    assert found
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)
    typed = [line for kind, block in blocks if not kind for line in block.splitlines()]
    return [line.partition("  #")[0].strip() for line in typed]


def test_the_quick_start_is_followed_word_for_word(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "quick-start.md").read_text()
    world = Example(tmp_path, "hello")
    try:
        (world.folder / "README.md").write_text(page)
        world.write("train.py", re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0])
        world.write("sweep.yaml", re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0])
        said = (
            typed(world, "Run it")
            + typed(world, "Does it survive a kill?")
            + typed(world, "Run it twelve times")
        )
        assert world.in_state("done") == 13 and "best rates/" in world.run("status").out
        assert re.search(r"^rates/\d+  loss=", said, re.MULTILINE)
        assert "exact: killed 2 times" in said
    finally:
        world.close()


def test_quick_start_reaches_a_useful_sweep_within_150_lines() -> None:
    page = (EXAMPLES.parent / "docs" / "quick-start.md").read_text()
    read = page.partition("## Look at it")[0]
    assert len(read.splitlines()) <= 150
    assert all(
        word in read
        for word in ("metric:", "momentum: [true, false]", "checkpoint:", "hostler drill", "--try")
    )


@pytest.mark.parametrize("name", [*names(), *sorted(ELSEWHERE)])
def test_an_example_is_a_script_a_file_and_a_readme(name: str) -> None:
    folder = EXAMPLES / name
    assert list(folder.glob("*.py")) and list(folder.glob("*.yaml"))
    assert titles(name), "nothing to type"
    readme = (folder / "README.md").read_text()
    for file in folder.glob("[!.]*.*"):
        if file.name not in ("README.md", "train.py", "requirements.txt"):
            assert file.name in readme, f"{file.name} is not mentioned"
