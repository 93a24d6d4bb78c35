"""Workers on this machine: background processes that outlive the terminal.

backend.py  the Backend: starts processes, keeps a note of each
host.py     an ordinary machine; base class of other hosts
keys.py     keys of its fleets
"""
