"""The store that honest runs filled, from the tests of enemies."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))
