"""From the bytes of a dump to a stored object: counted and hashed as they pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from jobs.processors.control import Control
from jobs.processors.progress import Meter
from jobs.storage.base import Writer

READ_BYTES = 256 * 1024


class Sink:
    """A file-like end of the stream. What it has counted and hashed is what the writer has been given."""

    def __init__(self, writer: Writer, control: Control, meter: Meter) -> None:
        self._writer = writer
        self._control = control
        self._hash = hashlib.sha256()
        self.meter = meter

    def write(self, data: bytes | memoryview) -> int:
        """Raises `Stopped` once the job has been told to stop, `StoreError` from the store."""
        self._control.check()
        self._hash.update(data)
        self._writer.write(data)
        self.meter.add(len(data))
        return len(data)

    def take_all(self, read_into: Callable[[memoryview], int | None]) -> None:
        """Until the reader gives 0 bytes. One buffer is used for all of it."""
        buffer = memoryview(bytearray(READ_BYTES))
        while count := read_into(buffer):
            self.write(buffer[:count])

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()
