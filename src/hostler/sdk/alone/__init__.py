"""A script that no worker started: it finds, claims, delivers and ends its run by itself.

begin.py   opens the store, finds or makes the run, claims it
draft.py   the job of script and parameters
choose.py  decides which run to go on with
home.py    owns the run: heartbeat, delivery, end
"""
