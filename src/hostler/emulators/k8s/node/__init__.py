"""Nodes of the stand-in: pods as processes of this machine.

nodes.py        a node's own report
kubelet.py      runs the containers of a node's pods
sandbox.py      folders, address and containers of a pod
container.py    one run of a container
launcher.py     its first process: namespaces, paths, command
environment.py  its variables
volumes.py      its volumes as folders
network.py      loopback addresses of pods
podstatus.py    the status of a pod
ending.py       the end of a pod: SIGTERM, grace, SIGKILL
"""
