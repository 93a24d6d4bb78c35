"""Verbs under "Keep".

verbs.py    their options
archive.py  `hostler archive`: the best N models over all sweeps
pull.py     `hostler pull`: checkpoint, outputs and code of a run, into a folder
push.py     `hostler push`: weights and a model card, to a hub, a bucket or a folder
gc.py       `hostler gc`: deletes what nobody needs
pack.py     `hostler pack`: small files of sweeps that are over, moved into a few
"""
