"""Verbs under "Run".

verbs.py         their options
run.py           `hostler run`: submits a run, starts a worker, follows it
sweep.py         `hostler sweep`: submits a sweep file, starts workers; `--try`: its first run, here
plan.py          `hostler plan`: says what a sweep file would do
forecast.py      that in words and as JSON
fleet_pick.py    the cheapest of several fleets, as scouted
targeted.py      `hostler sweep --by --under`: fleet and size for the whole
wish.py          these two options, read
moments.py       moments as people write them
scout.py         `hostler scout`: measures the first runs on several fleets
pricing.py       the price of a launch, shown before it starts
train.py         `hostler train`: the trainer
simulate.py      `hostler simulate`: time and cost before anything is spent, as a table and as JSON
drill.py         `hostler drill`: kills a script, says what it does not save
"""
