"""clouDL's Manager on runs of hostler's: one trial is one run. Scripts import it from `hostler.manager`.

manager.py  the Manager
trial.py    progress of one trial
adopted.py  optimisers and schedulers that a script never names
"""
