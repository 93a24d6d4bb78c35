"""`from hostler.earlystop import EarlyStopping`, as scripts of clouDL write it."""

from __future__ import annotations

from hostler.sdk.early_stopping import EarlyStopping

__all__ = ["EarlyStopping"]
