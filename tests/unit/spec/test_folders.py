"""Names of folders for runs."""

from __future__ import annotations

import pytest

from hostler.spec import space, spans
from hostler.spec.folders import LONGEST, STYLES, folder
from hostler.spec.job import Job
from hostler.spec.rounds import Round

DATE = "2025-01-31"


def sweep(parameters: dict[str, object], **given: object) -> Job:
    found = space.parse(parameters, **given)  # type: ignore[arg-type]
    return Job(name="lin", command=("x",), runs=(), rounds=(Round(found, spans.whole(found.count), ("x",)),))


def test_only_what_varies_is_in_the_name() -> None:
    job = sweep({"lr": [0.1, 0.01], "epochs": 30, "model": ["a", "b"]})
    assert str(folder(job, 3, "params", DATE)) == "3_lr=0.01+model=b"
    assert str(folder(job, 3, "dated", DATE)) == "2025-01-31-lin/3_2025-01-31-lin+lr=0.01+model=b"
    assert str(folder(job, 3, "numbered", DATE)) == "2025-01-31-lin/003-lr=0.01+model=b"
    assert str(folder(job, 3, "id", DATE)) == job.run_id(3)


def test_repeats_have_folders_of_their_own() -> None:
    job = sweep({"lr": [0.1, 0.01]}, repeat=2)
    assert str(folder(job, 2, "params", DATE)) == "2_lr=0.1+repeat=1"


@pytest.mark.parametrize("style", STYLES)
def test_names_stay_inside_limits_and_apart_whatever_the_values_are(style: str) -> None:
    values = ["../../etc", "a b'c\n;echo x", "é" * 300, "é" * 299 + "x", "", ".."]
    job = sweep({"text": values})
    names = [folder(job, i, style, DATE) for i in range(job.count)]
    assert len(set(names)) == len(values)
    for name in names:
        assert all(part not in ("..", ".", "") and len(part.encode()) <= LONGEST for part in name.parts)
        assert len(name.parts) == (2 if style in ("dated", "numbered") else 1)
