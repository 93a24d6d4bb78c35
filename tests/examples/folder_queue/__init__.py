"""A backend outside hostler, for a scheduler that is a folder of jobs (`folder_scheduler.py` beside it).

backend.py  writes jobs into the folder, lists and cancels them
host.py     a job as the worker in it sees it
keys.py     the keys of its fleets in hostler.yaml
"""

from hostler.backends.registry import BACKENDS

BACKENDS["folder"] = __name__  # inside hostler this is a line of backends/registry.py
