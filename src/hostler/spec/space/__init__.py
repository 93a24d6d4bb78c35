"""The search space of a sweep: parameters as a person writes them, to the parameters of each run.

Standard library only: workers compute the parameters of run n from the sweep's spec.
"""

from hostler.spec.space.listed import Listed
from hostler.spec.space.parsing import LARGEST, from_json, parse, to_json
from hostler.spec.space.space import Space
from hostler.spec.space.walk import Dimension

__all__ = ["LARGEST", "Dimension", "Listed", "Space", "from_json", "parse", "to_json"]
