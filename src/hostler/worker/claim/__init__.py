"""Finds a run for this machine, or says that the worker may leave.

finder.py          lists open runs, has one claimed; those of lost workers first
session_watch.py   which workers stand still, from every beat on
claimant.py        the worker that claims, and the sweeps it serves
served_sweeps.py   sweeps that may be served now, and their queues
open_runs.py       sorts open runs by who may take them
claimer.py         claims a run; answers for a holder that is gone
mates.py           claims runs that may share the process of another
untouched_runs.py  candidates that nobody has touched
search_client.py   asks a sweep's search for the next run
room.py            what this machine offers and has free
measures.py        needs of runs with `parallel: auto`, and how many of them fit
slots.py           whether a run fits, and what it gets
gpus.py            GPUs that a worker may use
memory.py          memory that runs may have
leave.py           decides whether the worker may leave
"""
