"""Several processes of one run.

ranks.py          ranks find each other
agreement.py      ranks of one machine agree where to save
far_agreement.py  ranks of several machines agree where to save
launch.py         starts a rank for each device of this machine
board.py          notes of ranks for each other
"""
