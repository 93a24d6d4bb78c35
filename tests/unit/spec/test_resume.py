"""Which words of `resume:` fit a restored checkpoint."""

from __future__ import annotations

import pytest

from hostler.spec.job import Job, from_json, to_json
from hostler.spec.resume import fitting, missing

FOLDER = "/runs/a b/checkpoint"


def fit(files: set[str], *alternatives: tuple[str, ...]) -> tuple[str, ...] | None:
    first, *others = alternatives
    job = Job(name="j", command=("train",), resume=first, resume_else=tuple(others))
    there = {FOLDER, *(f"{FOLDER}/{name}" for name in files)}
    found = fitting(
        job,
        lambda words: [word.replace("{checkpoint_dir}", FOLDER) for word in words],
        FOLDER,
        there.__contains__,
    )
    return found and found.resume


LAST = ("--resume", "{checkpoint_dir}/last.pth.tar")
FIRST = ("--resume={checkpoint_dir}/checkpoint-0.pth.tar",)


def test_path_that_was_restored_fits() -> None:
    assert fit({"last.pth.tar"}, LAST) == LAST


def test_path_that_was_not_restored_does_not_fit() -> None:
    assert fit({"args.yaml"}, LAST) is None


def test_first_alternative_that_fits_is_used() -> None:
    assert fit({"checkpoint-0.pth.tar"}, LAST, FIRST) == FIRST
    assert fit({"checkpoint-0.pth.tar", "last.pth.tar"}, LAST, FIRST) == LAST
    assert fit(set(), LAST, FIRST) is None


@pytest.mark.parametrize("words", [(), ("--resume",), ("--resume", "auto"), ("--dir", "{checkpoint_dir}")])
def test_words_without_a_path_in_the_folder_always_fit(words: tuple[str, ...]) -> None:
    assert fit(set(), words) == words


@pytest.mark.parametrize(
    ("word", "path"),
    [
        (f"{FOLDER}/a.pt", ""),
        (f"--resume={FOLDER}/a.pt", ""),
        (f"ckpt='{FOLDER}/a.pt'", ""),
        (f"python train.py --resume {FOLDER}/a.pt --epochs 3", ""),
        (f"{FOLDER}/my file.pt", ""),
        (f"--resume={FOLDER}/b.pt", f"{FOLDER}/b.pt"),
    ],
)
def test_path_is_found_inside_a_word(word: str, path: str) -> None:
    there = {f"{FOLDER}/a.pt", f"{FOLDER}/my file.pt"}
    assert missing([word], FOLDER, there.__contains__) == ([path] if path else [])


def test_whole_command_may_be_an_alternative() -> None:
    job = Job(name="j", command=("train",), resume=LAST, resume_else=(("python", "go_on.py"),))
    found = fitting(job, lambda words: words, "{checkpoint_dir}", lambda path: False)
    assert found and found.resume_whole and found.resume == ("python", "go_on.py")


def test_alternatives_survive_the_store() -> None:
    job = Job(name="j", command=("train",), resume=LAST, resume_else=(FIRST,))
    assert from_json(to_json(job)) == job
