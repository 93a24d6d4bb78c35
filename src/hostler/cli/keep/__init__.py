"""Verbs under "Keep".

verbs.py    their options
archive.py  `hostler archive`: the best N models over all sweeps
pull.py     `hostler pull`: checkpoint, outputs and code of a run, into a folder
gc.py       `hostler gc`: deletes what nobody needs
"""
