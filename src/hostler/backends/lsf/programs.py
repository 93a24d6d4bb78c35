"""Programs of LSF, by which a machine of it is known."""

from __future__ import annotations

from hostler.backends.job_checks import Programs

PROGRAMS = Programs("lsf", "bsub", "bqueues", ("bqueues", "-noheader", "-o", "queue_name"))
