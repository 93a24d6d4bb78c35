"""The file that leads kubectl and other clients to the stand-in."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

CONTEXT = "stand-in"


def write(path: Path, url: str, authority: bytes, token: str, namespace: str) -> Path:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority).decode()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "contexts": [
            {"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": namespace}}
        ],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    path.chmod(0o600)
    return path
