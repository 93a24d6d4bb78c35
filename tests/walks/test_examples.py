"""The examples, as their READMEs say them: every command of an `sh` block, typed in order.

Sections in `LONG` are of the long dose; all others are typed each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hostler
from example_world import EXAMPLES, Example

LONG = {("survive", "At any moment")}
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
    assert '{"epoch": 20, "loss": 0.0' in said and re.search(r"hello/\d  loss=0\.00", said)


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


CHECKS: dict[str, Callable[[Example, str], None]] = {
    "hello": hello,
    "existing_script": existing_script,
    "survive": survive,
}


@pytest.fixture(autouse=True)
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("example", names(), indirect=True)
def test_the_commands_of_its_readme_do_what_it_says(example: Example) -> None:
    name = example.folder.name
    said = "".join(typed(example, title) for title in titles(name) if (name, title) not in LONG)
    CHECKS[name](example, said)
    assert not example.processes()


@pytest.mark.soak
@pytest.mark.parametrize(("example", "title"), sorted(LONG), indirect=["example"])
def test_the_long_commands_of_its_readme_end_well(example: Example, title: str) -> None:
    typed(example, title)
    assert not example.processes()


@pytest.mark.parametrize("name", [*names(), *sorted(ELSEWHERE)])
def test_an_example_is_a_script_a_file_and_a_readme(name: str) -> None:
    folder = EXAMPLES / name
    assert list(folder.glob("*.py")) and list(folder.glob("*.yaml"))
    assert titles(name), "nothing to type"
    readme = (folder / "README.md").read_text()
    for file in folder.iterdir():
        if file.suffix in (".py", ".yaml", ".csv") and file.name != "train.py":
            assert file.name in readme, f"{file.name} is not mentioned"
