"""Platforms that start and stop workers: a folder for each, and what they share.

base.py          the seams: Backend, Host, Cloud, Vault, and their data
registry.py      platforms by name; imports parts of their folders on use
project_file.py  hostler.yaml and sweep files, fleets checked by their platform's keys
cloud.py         shared by clouds: owners, taken names, watching a launch until it is ready
capacity.py      machines in groups by region, and a launch while they fill
images.py        the seam to clouds that make images
prices.py        the price of a fleet, by its platform
doctor.py        findings of `hostler doctor`; programs asked for one line
fleet_files.py   a platform's example of a fleet, filled in with what is found here
privatefile.py   a file that only its user can read, for secrets
arrays.py        job arrays of a launch, as every batch scheduler takes them
scheduler.py     workers as job arrays of a scheduler with a dialect: sge, pbs, lsf
scheduler_keys.py  keys of their fleets
job_host.py      a job of theirs as its worker sees it
job_checks.py    their programs, for `hostler doctor` and `hostler init`
terminal.py      commands of a backend, typed on this machine
over.py          commands of a backend, typed on another machine
fetch.py         HTTP requests of a machine's first program; objects of Google's storage
store_check.py   opens the store with the worker's client before a worker starts
answer_form.py   the form of a platform's answers: fields and their types
metadata.py      Google's metadata server, asked from a VM or a pod
agents.py        asks `worker/agent.py` on each machine of a fleet
local/           background processes of this machine
ssh/             machines reached by ssh
slurm/           tasks of job arrays
sge/             tasks of Grid Engine
pbs/             subjobs of PBS
lsf/             elements of LSF arrays
gce/             spot VMs of Google
kubernetes/      pods of an Indexed Job
"""
