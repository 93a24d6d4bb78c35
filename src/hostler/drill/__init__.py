"""The drill: a script undisturbed and killed, and what the two have to say about its checkpoints.

`witness.py` and `fingerprint.py` run inside the script's process; `rig.py` runs it, `compare.py` and
`diagnose.py` decide, and are pure.
"""
