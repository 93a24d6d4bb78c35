"""Workers as tasks of PBS job arrays.

backend.py    what differs from other schedulers (backends/scheduler.py): qsub's words, the queue as rows
host.py       a task as its worker sees it
keys.py       keys of its fleets
programs.py   programs by which it is known
capacity.py  runs for each task, for `hostler simulate`
doctor.py     checks of `hostler doctor`
discovery.py  what `hostler init` finds on this machine
"""
