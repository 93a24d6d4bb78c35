"""An attempt on this machine.

execution.py        the attempt in order: make ready, start, watch, end
local_attempt.py    its job, local folder and way to the store, for every step
preparation.py      inputs, checkpoint, code, packages, data
running_process.py  the process, its saver, watch, meter and rung watch
tracker_feed.py     shows it in tracking tools
invocation.py       words and environment of the process
option_forms.py     forms of options that a usage error showed
watch.py            stop road, time limit, hanging, memory
rung_watch.py       has a run judged at each level
meter.py            CPU, memory and GPU use as metrics
surroundings.py     writes down machine, Python and packages
exit.py             exit code or signal of a process
failure.py          what an exit means: its kind, in one line
kinds.py            kinds of failures, and what each allows
tracebacks.py       tracebacks in a log
drawn_tracebacks.py tracebacks as rich and IPython draw them
larger_gpu.py       whether a run out of memory may get a larger GPU
conclude.py         decides what becomes of the run
ending.py           delivers the end
run_folders.py      local folders of runs
dead_attempt.py     delivers what the attempt of a dead worker left
folder_remover.py   removes them, many at once
reused_folders.py   those that later runs of the same code take
leftovers.py        processes that a dead worker left
"""
