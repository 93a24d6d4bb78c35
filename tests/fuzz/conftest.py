"""The store that honest runs filled, from the tests of enemies; seeds, from those of histories."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))
sys.path.insert(0, str(Path(__file__).parents[1] / "history"))
