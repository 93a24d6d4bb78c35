"""The API server of the stand-in.

server.py     HTTP: requests in, answers or streams out
api.py        a method for each verb
message.py    a request and its answer
changing.py   objects replaced or patched
patching.py   JSON, merge and strategic patches
selectors.py  label and field selectors
tables.py     objects as tables, for kubectl
podlogs.py    logs of containers
refusal.py    errors as an API server words them
"""
