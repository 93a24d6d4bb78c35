"""Verbs under "Steer".

verbs.py     their options
acting.py    does one thing to each named run, reports on each
stop.py      `hostler stop`: runs save and end
pause.py     `hostler pause`: runs save and wait
resume.py    `hostler resume`: stopped and paused runs go on
retry.py     `hostler retry`: failed runs again, with today's code
requeue.py   workers for runs that were queued again
parallel.py  `hostler parallel`: how many runs at once
tag.py       `hostler tag`: tags of runs
rm.py        `hostler rm`: runs to the trash and out of it
"""
