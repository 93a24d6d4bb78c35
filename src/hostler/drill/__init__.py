"""The drill: a script undisturbed and killed, compared; says what its checkpoints lack.

`witness.py` and `fingerprint.py` run inside the script's process; `compare.py` and `diagnose.py` are pure.

plan.py         moments at which the script is killed
rig.py          runs the script with real workers, and kills them
witness.py      writes down what the script's process holds at each step
fingerprint.py  short marks of weights, optimisers and random states
collect.py      evidence from the store and the witness
evidence.py     that evidence, as frozen data
compare.py      where two runs differ, to the bit
diagnose.py     from evidence to what was not saved
"""
