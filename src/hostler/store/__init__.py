"""Bytes under keys, in a folder or a bucket. Knows nothing of runs.

base.py       the seam: six methods over bytes; the form of a key; local files
registry.py   a store by its URL; whether it can be used; the file system of a folder
folder.py     a folder, local or shared
walk.py       keys of a folder in order
memory.py     a store in memory, for tests
ssh.py        a folder of another machine
server.py     its far side
bucket.py     S3, GCS and Azure by obstore
answer.py     errors of its driver, and their meaning
retry.py      the retry loop
"""

from hostler.store.base import Blob, Entry, NotFound, Store
from hostler.store.registry import open_store

__all__ = ["Blob", "Entry", "NotFound", "Store", "open_store"]
