"""Sweeps, and how their runs are handed out.

sweeps.py        sweeps: submitted, edited, halted, tagged
queue.py         open runs of a sweep, from names alone
concurrency.py   turns: no more than `parallel` runs at once
deadline.py      the budget of hours
journal.py       configurations that a search chose
rungs.py         values of runs at the steps where they are compared
ends.py          ends of runs, for a search
failures.py      halts a sweep whose runs all fail alike
target.py        the moment by which a sweep is to be done, and workers for it
measured_rates.py rates at which fleets train a sweep
outgrown_gpus.py GPUs that are too small for a sweep
gpu_company.py   company for runs that hardly use their GPU
learned_forms.py forms of options that a usage error showed
error_groups.py  failures, grouped by error
summary.py       a sweep in one line
metric_advice.py the line that names a metric, for a sweep without one
notices.py       messages to people, each sent once
"""
