"""Tasks of other tools as a command and a fleet, one file for each tool.

Every key that has no counterpart here is a line for a person. Values that look like secrets are carried over
by their names alone.

reading.py       the tool that a task belongs to
carried.py       what is carried over of a task, and lines about the rest
skypilot.py      SkyPilot
dstack.py        dstack, and the GPUs it asks for
kubeflow.py      Kubeflow: PyTorchJob, TrainJob
compose.py       docker-compose
wandb_launch.py  W&B launch
rendezvous.py    options of their torchrun that hostler gives
"""

from hostler.spec.formats.tasks.reading import is_it, read

__all__ = ["is_it", "read"]
