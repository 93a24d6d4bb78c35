"""`hostler down` without a name: which fleet was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hostler.cli import here
from hostler.cli.main import declared


@pytest.mark.parametrize(("words", "told"), [((), True), (("desk",), False)])
def test_down_without_a_name_lists_untouched_fleets(
    words: tuple[str, ...], told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    fleets = "{desk: {backend: local}, burst: {backend: gce, zones: [us-central1-a]}}"
    Path("hostler.yaml").write_text(f"name: p\nfleet: desk\nfleets: {fleets}\n")
    here.project.cache_clear()  # another test's, in this process
    answer = CliRunner().invoke(declared("down"), list(words), standalone_mode=False)
    said = "hostler: this ends desk only; hostler down FLEET ends another: burst\n"
    assert (said in answer.output) is told and "nothing of desk is left" in answer.output
    here.project.cache_clear()
