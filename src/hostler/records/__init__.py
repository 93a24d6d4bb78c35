"""Meaning over bytes: the protocol, and everything that runs leave.

layout.py    makes every key of the store
body.py      small JSON records with format number and token
project.py   the project's record: beat and lease
defaults.py  defaults of parameters, by command
rows.py      all runs as rows, for `status`
rich.py      runs and sweeps as Jupyter shows them
interest.py  the marker that somebody looks
reuse.py     objects of the store that a submission uses again
garbage.py   objects that nobody needs
trash.py     empties the trash
run/         log, state and attempts of a run
sweep/       sweeps, queues, searches
series/      metrics, logs, segments
checkpoint/  checkpoints, outputs, archive
launch/      launches of fleets and their money
packs/       small objects of ended runs, many in one
"""
