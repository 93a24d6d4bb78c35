"""An attempt at a run, delivered to the store: by a worker's execution, a gang's member, a script by hand.

delivery.py       all of it, from a claim that stands to the entry that closes it: restore, keep, close
heartbeat.py      beats for a process, looks at the logs of its runs, passes stop requests and fences on
status.py         asked to stop, taken over, or ours: every write that may not be lost goes through it
uploader.py       points and output, in fragments, while the run runs
saver.py          checkpoints: when one is made, where it goes, its number
folder_watch.py   the checkpoint folder while a script writes to it: which files are complete
folder_parts.py   which files of it belong together
rest.py           how long a process that could have written to files has left them alone
kept_lump.py      the last complete copy of files that are rewritten under the same names
replaced_file.py  versions of a file that is replaced by rename faster than it rests
save_rhythm.py    whether a script that saves often is between two saves
still_copy.py     copies of a folder that never rests, taken then
folder.py         links, copies and checks of its files
boosted_rounds.py rounds in models of XGBoost, which counts them anew
working_files.py  files that a script made or changed in its working folder
usage.py          use of CPU, memory and GPU by processes right now, and as metrics
nvml.py           NVIDIA GPUs by the driver's library
script_saver.py   the saver of a script by hand, alive or killed
dead_scripts.py   finds scripts by hand that died on this machine, for every reader of a store
dead_script.py    delivers what one of them left, and closes its attempt

The training never waits for any of it. Standard library alone; a run that only logs loads no saver.
"""
