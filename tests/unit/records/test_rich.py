"""What Jupyter shows of runs and sweeps."""

from __future__ import annotations

from pathlib import Path

from hostler.records.rows import rows
from hostler.sweeping import Sweep
from seen_world import HOSTILE, gallery


def test_run_and_sweep_display_themselves_and_escape_hostile_text(tmp_path: Path) -> None:
    seen = gallery(tmp_path / "store")
    [first, *_] = rows(seen.store, ["odd-values"])
    html = first._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert HOSTILE not in html
    shown = Sweep("cifar-grid", seen.url)._repr_html_()
    assert "30 done" in shown
    assert shown.index("cifar-grid/21") < shown.index("cifar-grid/22")  # the best first
    assert "no runs" in Sweep("empty", seen.url)._repr_html_()
