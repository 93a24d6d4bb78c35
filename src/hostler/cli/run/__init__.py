"""Verbs under "Run".

verbs.py         their options
run.py           `hostler run`: submits a run, starts a worker, follows it
sweep.py         `hostler sweep`: submits a sweep file, starts workers; `--try`: its first run, here
plan.py          `hostler plan`: says what a sweep file would do
forecast.py      that in words and as JSON
pricing.py       the price of a launch, shown before it starts
train.py         `hostler train`: the trainer
simulate.py      `hostler simulate`: time and cost before anything is spent, as a table and as JSON
drill.py         `hostler drill`: kills a script, says what it does not save
"""
