"""Programs of Grid Engine, by which a machine of it is known."""

from __future__ import annotations

from hostler.backends.job_checks import Programs

PROGRAMS = Programs("sge", "qsub", "qconf", ("qconf", "-sql"))
