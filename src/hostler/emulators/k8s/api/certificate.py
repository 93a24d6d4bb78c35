"""A certificate for the loopback address, made anew for each cluster: clients send tokens over TLS only."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(self.certificate, self.key)
        return found


def make(folder: Path) -> Certificate:
    made = Certificate(folder / "ca.crt", folder / "ca.key")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += [
        "-days",
        "30",
        "-subj",
        "/CN=stand-in",
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:localhost",
    ]
    command += ["-keyout", str(made.key), "-out", str(made.certificate)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"openssl made no certificate: {done.stderr.strip()}")
    return made
