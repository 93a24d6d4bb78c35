"""The emulator as a test uses it: started on a loopback port, stopped with the block.

    with GcsEmulator("my-bucket") as gcs:
        os.environ.update(gcs.environ())

State lives in memory and goes with it. Any number may run side by side.
"""

from __future__ import annotations

import threading
from types import TracebackType

from hostler.emulators.gcs.counts import Counts
from hostler.emulators.gcs.faults import Faults
from hostler.emulators.gcs.message import Refusal
from hostler.emulators.gcs.server import Server, Service
from hostler.emulators.gcs.storage import Storage
from hostler.emulators.gcs.tokens import Tokens


class GcsEmulator:
    """`buckets` exist from the beginning. `strict`: requests need a token from the metadata server."""

    def __init__(self, *buckets: str, strict: bool = False, tokens: Tokens | None = None) -> None:
        self.tokens = tokens or Tokens()
        self._strict = strict
        self._storage = Storage()
        self._service = Service(self._storage, self.tokens, strict)
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        for name in buckets:
            self.make_bucket(name)

    def __enter__(self) -> GcsEmulator:
        self._server = Server(self._service)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        self._server = self._thread = None

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("the emulator runs inside its `with` block only")
        return self._server.url

    @property
    def faults(self) -> Faults:
        return self._service.faults

    @property
    def counts(self) -> Counts:
        return self._service.counts

    def environ(self) -> dict[str, str]:
        """Leads hostler's gs:// stores and Google's own clients here, in this process and its children."""
        found = {"STORAGE_EMULATOR_HOST": self.url}
        if self._strict:
            host = self.url.removeprefix("http://")
            found |= {"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host, "GCE_METADATA_ROOT": host}
        return found

    def make_bucket(self, name: str) -> None:
        self._storage.make_bucket(name)

    def remove_bucket(self, name: str) -> None:
        """The bucket vanishes with all it holds."""
        self._storage.remove_bucket(name, force=True)

    def locate(self, name: str, location: str) -> None:
        """The bucket is elsewhere: `EUROPE-WEST4`, or `EU` for several regions."""
        self._storage.bucket(name).location = location

    def content(self, bucket: str, key: str) -> bytes | None:
        """An object's bytes, past all faults; None if there is none."""
        try:
            found = self._storage.find(bucket, key)
        except Refusal:
            return None
        return found.data if found else None

    def writes(self) -> int:
        """The number of objects stored so far; a replacement counts each time."""
        return self._storage.stored

    def pending(self) -> list[str]:
        """Keys of uploads in parts that were begun and neither finished nor given up."""
        return self._storage.pending()
