"""Images of a family: which are old, by the moment they were made and not by how that is written."""

from __future__ import annotations

import pytest

from hostler.backends.gce.images import gallery
from hostler.backends.images import Image, moment, older

EARLY = "2026-03-08T01:30:00.123-08:00"  # 09:30 in UTC
LATE = "2026-03-08T03:10:00.456-07:00"  # 10:10: after the clocks were put forward
UTC = "2026-03-08T10:00:00Z"


def image(name: str, created: str) -> Image:
    return Image(name, "mine", created, 1, 1)


def test_a_moment_is_the_same_in_every_offset() -> None:
    assert moment("2026-03-08T03:00:00-07:00") == moment(UTC) == moment("2026-03-08T12:00:00.000+02:00")
    assert moment("") == 0.0


def test_what_was_made_first_is_older_whatever_its_offset() -> None:
    found = [image("a", UTC), image("b", LATE), image("c", EARLY)]
    assert [one.name for one in older(found, 1)] == ["a", "c"]
    assert [one.name for one in older(found, 2)] == ["c"]


class Answers:
    """A client that knows some images."""

    def __init__(self, *times: str) -> None:
        self._times = times

    def list(self, path: str, **query: str) -> list[dict[str, object]]:
        return [
            {"name": f"i{n}", "family": "mine", "creationTimestamp": when, "status": "READY"}
            for n, when in enumerate(self._times)
        ]


@pytest.mark.parametrize("order", [(UTC, LATE, EARLY), (EARLY, UTC, LATE)])
def test_list_begins_with_the_newest_image_and_marks_it(order: tuple[str, ...]) -> None:
    found = gallery.images(Answers(*order), "mine")  # type: ignore[arg-type]
    assert [one.created for one in found] == [LATE, UTC, EARLY]
    assert [one.newest for one in found] == [True, False, False]
