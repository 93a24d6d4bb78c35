"""Workers on Google Compute Engine: groups of spot VMs that finish by themselves.

backend.py    the Backend: start, list, stop, remove
host.py       a VM as its worker sees it: preemption, leaving, tearing down
keys.py       keys of its fleets
shape.py      machine, GPUs, image, disk and zones from a fleet's keys
names.py      names, labels and descriptions that say whose a thing is
template.py   the instance template
groups.py     the managed groups, one for each region
plans.py      everything that one launch makes
scripts.py    startup and shutdown scripts of a VM
boot.py       a VM's first program: brings hostler, keeps a worker
watching.py   watches a launch until its first VM reports
advice.py     Google's forecast of capacity by region
capacity.py   groups and sizes for `hostler simulate`
removal.py    removes VMs, groups and templates
client.py     the REST API over the standard library
tokens.py     access tokens: a VM's, a person's, an emulator's
reasons.py    refusals in plain words
manager.py    secrets of launches in Secret Manager
lifetimes.py  when VMs of a launch came and went
prices.py     hourly prices by zone, from a table
catalogue.py  newer prices, from Google's Cloud Billing catalogue
doctor.py     checks of `hostler doctor`
discovery.py  what `hostler init` finds on this machine
hand_vm.py    a VM for hand work
entrance.py   address and host keys of a VM, for ssh
wish/         machines and places that are left to be chosen, by price
images/       images made on a temporary VM
"""
