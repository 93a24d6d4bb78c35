"""Metrics and logs of runs.

points.py         points as packed bytes
metrics.py        fragments of metrics, and the chain through attempts
logs.py           fragments of output
picker.py         points from printed lines
tool_lines.py     metrics in lines of common tools
plain_lines.py    metrics in lines of names and values
printed_tables.py metrics in tables that are printed line by line
metric_names.py   words and numbers of metrics as tools print them
reread.py         points from stored logs of ended runs
columns.py        columns of values as bytes
curve_columns.py  curves of a run as columns
segments.py       many ended runs in one object
packing.py        packs runs that no segment has
ended_table.py    ended runs by column, for counting and ranking
merging.py        several segments as one table
"""
