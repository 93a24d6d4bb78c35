"""Verbs under "Look".

verbs.py     their options
status.py    `hostler status`: a row for each run, a line for each sweep
sweep_lines.py  sweeps in a line each, for `status`
queued.py    queues of Slurm and clouds, for `status`
show.py      `hostler show`: everything about one run
logs.py      `hostler logs`: the output of runs
best.py      `hostler best`: the best run of a sweep
diff.py      `hostler diff`: two runs compared
errors.py    `hostler errors`: failures, grouped
cost.py      `hostler cost`: money of runs, sweeps and fleets
cost_explained.py  the cost of launches by purpose
wait.py      `hostler wait`: until runs have ended
attach.py    `hostler attach`: follows a run
"""
