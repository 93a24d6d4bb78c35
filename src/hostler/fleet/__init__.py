"""The submitter's side: sends runs to the store and starts workers for them.

submit.py          one run: from a command to a sweep of one in the store
sweep.py           a sweep file: a new sweep, or another round of one
function.py        a function that is in no file, packed by cloudpickle
callers.py         programs that only call functions: not code of the calls
edit.py            decides what an edited file means for a sweep
preview.py         numbers of runs that are new, done, running
equal_runs.py      equal runs that other sweeps have finished
again.py           runs that are submitted again
init_from.py       `--init-from`: the start of runs
option_forms.py    how parameters are written as options
tracking.py        checks tracking tools before submission
fleet_choice.py    the fleet that is meant, and its backend
launcher.py        plans, funds and starts workers of a fleet
machine_choice.py  machines that a fleet leaves open, and what runs have shown of each
scouting.py        measures steps of a sweep on candidate fleets
late_hosts.py      notes of hosts that were down at the launch
latecomers.py      starts workers on them when they are back
machines.py        launches whose machines come with them: joined or begun
ready.py           asks machines whether they reach the store
library.py         puts hostler and its store driver into the store
secrets.py         secrets of a launch: checked, put, removed
pending.py         whether anything will still happen in a sweep
snapshot/          code and data as they are at submission
"""
