"""A sweep as one page that opens from disk.

report.py      plots, table, errors and the best runs in one HTML file
conclusion.py  the sentence that it begins with
"""

from __future__ import annotations

from hostler.analysis.report.report import report, without_metric

__all__ = ["report", "without_metric"]
