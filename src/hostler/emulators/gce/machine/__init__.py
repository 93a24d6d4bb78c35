"""Machines of the emulator, from boot to end.

blueprint.py  a request checked and filled in as a machine
machine.py    one machine: its resource and its state
life.py       places, boots, stops and deletes a machine
leaving.py    the end of a machine and its disks
guest.py      the processes of a machine, seen from outside
guardian.py   the process that all of them descend from
guest_agent.py  its sshd, and the accounts and keys that open it
contents.py   folders that stand for boot disks and images
board.py      metadata of a machine
metadata.py   its metadata server
group.py      a managed group: which machines come and go
group_size.py  keeps a group at its size
"""
