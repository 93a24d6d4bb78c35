"""Several runs of a sweep in one process.

process.py  gathers runs and starts their process; how many may share one
kept.py     processes whose runs have left, for the next group
slot.py     one run's place in it, as a process of its own
gate.py     how many of them work in the worker at once
"""
