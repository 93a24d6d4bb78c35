"""A sweep as one page that opens from disk."""

from __future__ import annotations

from hostler.analysis.report.report import report

__all__ = ["report"]
