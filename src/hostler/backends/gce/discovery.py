"""Finds Google's credentials for `hostler init`, and the project that they name."""

from __future__ import annotations

import json

from hostler import env
from hostler.backends.fleet_files import Discovery


def discover() -> Discovery | None:
    path = env.google_key_file() or env.google_login_file()
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    named = body if isinstance(body, dict) else {}
    project = env.cloud_project() or named.get("project_id") or named.get("quota_project_id")
    if not isinstance(project, str):
        return Discovery("Google credentials", {})
    return Discovery(f"Google credentials, project {project}", {"project": project})
