"""Launches of fleets, and their money.

launches.py    launches and how long their workers were there
closing.py     sweeps that a launch serves; whether it is closed
serving.py     whether a living worker serves a sweep
ledger.py      reservations and returns of a sweep
settlement.py  money that ended launches spent and return
breakdown.py   cost of a launch by purpose
costs.py       costs of sweeps, added up
"""
