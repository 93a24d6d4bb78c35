"""Inside the user's process: a run, its log, its checkpoints. Standard library only.

start.py           begins a run: handed over by a worker, or the script's own; open runs at forks and exit
run.py             the run that a script holds
params.py          parameters of a run
recorder.py        takes what a script logs: points, and texts, arrays and pictures as files
point_file.py      the mapped file of points; survives SIGKILL
loops.py           `epochs` and `steps`: loops that resume
loader.py          the position inside a torch DataLoader
loader_ahead.py    the same of a loader that Accelerate has prepared
position.py        iterations done in each loop
saving.py          options for when checkpoints are made
signals.py         signals as stop requests
leaving.py         ends a loop after a stop request
early_stopping.py  says when a metric has stopped getting better
home.py            the seam between a run and its owner
handed.py          a run from a worker, by the handoff folder
shared_process.py  several runs in this process
call.py            runs a function as a run
notebook.py        runs a notebook as a script
messages.py        lines of the library to the person
alone/             runs of scripts started by hand
checkpoint/        exact checkpoints
ranks/             several processes of one run
manager/           clouDL's Manager
"""
