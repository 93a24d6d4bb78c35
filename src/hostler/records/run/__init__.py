"""The protocol of one run.

log.py           the log: entries 1, 2, 3…, each created once
entries.py       Claim, Release, End and the other entries, as frozen types
state.py         folds a log into the run's state
attempt.py       claims a run; appends release and end
control.py       stop, pause, resume and retry by a person
heartbeats.py    heartbeats of workers, and the watch over them
holder.py        identity of a process on this machine and boot
gang.py          members of a gang, and its go
handoff.py       the folder between worker and process
history.py       attempts of a run, one line each
upstream.py      runs that other runs take something from
resolve.py       runs by id, name or the beginning of one
run_details.py   everything about one run, read once
surroundings.py  machine, Python and packages of attempts
tracked.py       tracking tools of a run, and their files
"""
