"""The search space of a sweep: parameters as a person writes them, to the parameters of each run.

Standard library only: workers compute the parameters of run n from the sweep's spec.

space.py         a space: number of runs, parameters of run n
parsing.py       `parameters` of a file to a space
entry.py         forms of a parameter
distribution.py  a table of min, max and step to a form
ladder.py        rows of exact numbers
group.py         LIST and ZIP: several parameters under one key
expression.py    arithmetic over parameters
value.py         values that can be written and read back
order.py         entries in the order of their dependencies
part.py          one table under one method
grid.py          the product of axes
draw.py          random draws from seed, index and name
walk.py          one configuration, choice by choice
repeat.py        the same configuration several times
listed.py        configurations that are written down
trying.py        errors that show only when runs are made
fault.py         an error, and its key
"""

from hostler.spec.space.listed import Listed
from hostler.spec.space.parsing import LARGEST, from_json, parse, to_json
from hostler.spec.space.space import Space
from hostler.spec.space.walk import Dimension

__all__ = ["LARGEST", "Dimension", "Listed", "Space", "from_json", "parse", "to_json"]
