"""clouDL's Manager on runs of hostler's: one trial is one run. Scripts import it from `hostler.manager`.

manager.py  the Manager, and the progress of one trial
adopted.py  optimisers and schedulers that a script never names
"""
