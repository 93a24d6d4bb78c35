"""Several workers carry out one attempt.

rendezvous.py     gangs that are forming: join, wait or go
leader.py         the worker whose claim stands: gathers and watches
member.py         a worker in a gang that another leads
meeting.py        addresses and ports where the nodes meet
missing.py        says who has not come, and why
ranks.py          variables of each rank
launchers.py      commands that start a node's ranks themselves
board.py          the notice board of the ranks
checkpoint.py     a node's part of a checkpoint
first_failure.py  the failure that came first
"""
