"""The user's process.

process.py           starts, polls, signals and kills it, through two pipes to its supervisor
launching.py         the command for one or several processes of a node
starter.py           starts several processes of a node
spawning.py          supervisors, lent to one run at a time
spawner.py           forks supervisors
supervisor.py        runs the process; outlives neither it nor the worker
group.py             all processes of a run, ended together
warm.py              starts scripts from a parent with their imports
warm_parent.py       that parent
exit_handlers.py     what libraries have left to do at its end
"""
