"""An emulator of Google Cloud Storage for tests, with faults on demand; standard library only.

emulator.py    starts the emulator on a loopback port
server.py      HTTP requests in, answers out, faults between; several calls in one request
route.py       the API and object that a request means
message.py     a request, an answer, a refusal
json_api.py    the JSON API but uploads
xml_api.py     the XML API
uploads.py     uploads of the JSON API
multipart.py   bodies of several parts
media.py       bytes of an object, whole or a range
conditions.py  preconditions of requests
storage.py     all buckets, under one lock
bucket.py      objects of one bucket
objects.py     one generation of an object
counts.py      numbers of requests
faults.py      failures on demand or by chance
tokens.py      tokens, as a VM gets them
"""

from hostler.emulators.gcs.emulator import GcsEmulator
from hostler.emulators.gcs.faults import (
    DROPPED,
    EXPIRED,
    HALVED,
    LOST,
    Fault,
    Faults,
    busy,
    cut,
    failed,
    slow,
)
from hostler.emulators.gcs.route import Kind

__all__ = [
    "DROPPED",
    "EXPIRED",
    "HALVED",
    "LOST",
    "Fault",
    "Faults",
    "GcsEmulator",
    "Kind",
    "busy",
    "cut",
    "failed",
    "slow",
]
