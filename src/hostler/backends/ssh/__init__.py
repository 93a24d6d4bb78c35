"""Workers on machines that a person reaches by ssh: nothing is installed there, nothing is left.

backend.py    the Backend: asks an agent on each machine
keys.py       keys of its fleets
doctor.py     checks of `hostler doctor`
discovery.py  what `hostler init` finds on this machine
"""
