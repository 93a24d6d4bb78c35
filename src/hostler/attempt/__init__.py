"""An attempt at a run, delivered to the store: by a worker's execution, a gang's member, a script by hand.

delivery.py    the whole of it, from a claim that stands to the entry that closes it: restore, keep, close
heartbeat.py   beats for a process, looks at the log of each run it holds, passes stop requests and fences on
status.py      asked to stop, taken over, or ours: every write that may not be lost goes through it
uploader.py    points and output, in fragments, while the run runs
saver.py       checkpoints: the library's at once, a script's own files when at rest; numbers them
folder.py      the checkpoint folder: what is whole in it, links and copies of it
working_files.py  files that a script made or changed in its working folder

The training never waits for any of it. Standard library alone; a run that only logs loads no saver.
"""
