"""The end of a run as its script tells it: secret values do not get into the store."""

from __future__ import annotations

from hostler.worker.run.ending import _covered


def test_secret_in_a_returned_result_is_covered() -> None:
    told = {"returned": {"value": ["key s3cret", {"deep": "s3cret"}, 5, None]}, "acc": 0.5}
    found = _covered(told, lambda text: text.replace("s3cret", "***"))
    assert found == {"returned": {"value": ["key ***", {"deep": "***"}, 5, None]}, "acc": 0.5}
    assert _covered(None, str.upper) is None
