"""The Dockerfile of a project: its packages, and nothing of its code, which comes with each run. Pure."""

from __future__ import annotations

from hostler.spec.project import Project

BASE = "python:3.12-slim"
HEAD = "# Written by hostler image build --docker; yours to change: it is written again only if it is gone."


def dockerfile(project: Project, base: str) -> str:
    """hostler itself need not be in it: it is brought into any image that has Python."""
    lines = [HEAD, f"FROM {base}", "ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1"]
    wanted = project.python.requirements
    if wanted:
        lines += ["WORKDIR /build", f'COPY ["{wanted}", "requirements.txt"]']
        lines += ["RUN pip install --no-cache-dir -r requirements.txt"]
    return "\n".join([*lines, "WORKDIR /work", ""])
