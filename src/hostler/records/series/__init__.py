"""Metrics and logs of runs.

points.py         points as packed bytes
metrics.py        fragments of metrics, and the chain through attempts
logs.py           fragments of output
picker.py         points from printed lines
tool_lines.py     metrics in lines of common tools
reread.py         points from stored logs of ended runs
columns.py        columns of values as bytes
curve_columns.py  curves of a run as columns
segments.py       many ended runs in one object
packing.py        packs runs that no segment has
merging.py        several segments as one table
"""
