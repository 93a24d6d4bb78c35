"""Programs of PBS, by which a machine of it is known."""

from __future__ import annotations

from hostler.backends.job_checks import Programs

PROGRAMS = Programs("pbs", "qsub", "pbsnodes", ("qstat", "-Q", "-f"), r"^Queue: (\S+)")
