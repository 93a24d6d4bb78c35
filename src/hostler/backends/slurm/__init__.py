"""Workers as tasks of Slurm job arrays.

backend.py    the Backend: sbatch, squeue, scancel
login.py      the same through a login node, by ssh
host.py       a task as its worker sees it: time limit, requeue
keys.py       keys of its fleets
batch.py      options and script for `sbatch`
fates.py      how tasks that died hard ended, by sacct or scontrol
queue.py      the output of `squeue` as data
states.py     job states, and their meaning for a worker
reasons.py    why a job waits, in plain words
refusals.py   why `sbatch` refused, and what follows
capacity.py   runs for each task, for `hostler simulate`
doctor.py     checks of `hostler doctor`
discovery.py  what `hostler init` finds on this machine
"""
