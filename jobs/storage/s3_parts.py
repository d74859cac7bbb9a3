"""Sizes and buffers of the parts of a multipart upload, and the threads that send them."""

from __future__ import annotations

import mmap
import threading
import time
from collections import deque
from collections.abc import Callable

from .base import Stop, Stopped

MIB = 1024 * 1024
FIRST_PART = 6 * MIB  # three are held in memory; with less, 10,000 parts would not reach 5 TiB
LARGEST_PART = 5 * 1024 * MIB  # S3's limit, as are 10,000 parts and 5 TiB an object
MOST_PARTS = 10_000
THREADS = 2
BIG_PART = 64 * MIB  # from here on one part is sent while one is filled
POLL = 0.25  # seconds between looks at stop()


def part_size(number: int, size_hint: int | None) -> int:
    """Bytes of part `number` (from 1), so that 10,000 parts always reach 5 TiB.

    The hint fills half the parts, all of one size; a stream that outgrows it (or has none: its first
    1,000 parts) doubles the size often enough. Small parts as long as possible: they are held in memory.
    """
    planned = MOST_PARTS // 2 if size_hint else MOST_PARTS // 10
    base = max(FIRST_PART, -(-(size_hint or 0) // planned // MIB) * MIB)
    doublings = -(-max(0, number - planned) // ((MOST_PARTS - planned) // 10))
    return int(min(LARGEST_PART, base << doublings))


class PartBody:
    """A part as a file: botocore then sends it block by block, so that its socket timeout holds for
    one block; a whole part in one send would need 8 MiB within ten seconds."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def read(self, size: int | None = -1) -> memoryview:
        end = len(self._data) if size is None or size < 0 else self._at + size
        block = self._data[self._at : end]
        self._at += len(block)
        return block

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, len(self._data))[whence]
        return self._at

    def __len__(self) -> int:
        return len(self._data)


class PartSender:
    """Sends filled buffers from background threads. At most THREADS + 1 buffers exist, so a store
    that is slow or away blocks `take`, and with it the dump.

    `send(number, data)` retries by itself and returns the part's ETag; its first error ends all.
    """

    def __init__(self, send: Callable[[int, memoryview], str], stop: Stop) -> None:
        self._send = send
        self._stop = stop
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, mmap.mmap, int]] = deque()
        self._free: list[mmap.mmap] = []
        self._out = 0  # buffers given away: being filled, waiting or being sent
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None
        self._closed = False
        self.etags: dict[int, str] = {}

    def take(self, size: int) -> mmap.mmap:
        """A buffer of `size` bytes, as soon as there is one. The senders' error, or Stopped."""
        limit = THREADS + 1 if size < BIG_PART else 2
        with self._changed:
            self._wait(lambda: self._out < limit)
            self._out += 1
            while self._free:
                buffer = self._free.pop()
                if len(buffer) == size:
                    return buffer
        # Mapped: pages cost nothing until they are filled, and go back to the system at once.
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def submit(self, number: int, buffer: mmap.mmap, length: int) -> None:
        """Hand a filled buffer over to be sent; it is the sender's from now on."""
        with self._changed:
            self._raise_error()
            self._waiting.append((number, buffer, length))
            self._changed.notify_all()
        if len(self._threads) < THREADS:
            # Daemons: a request that hangs must not keep a worker from exiting.
            thread = threading.Thread(
                target=self._run, name=f"pgbr-s3-part-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def drain(self) -> None:
        """Wait until every submitted part is stored."""
        with self._changed:
            self._wait(lambda: self._out == 0)

    def close(self, seconds: float) -> bool:
        """End the threads without sending what waits; True when none is left after `seconds`."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._free.clear()
            self._changed.notify_all()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def closed(self) -> bool:
        return self._closed

    def _wait(self, ready: Callable[[], bool]) -> None:
        while True:
            self._raise_error()
            if ready():
                return
            if self._stop():
                raise Stopped("Stopped while the store was taking the data.", transient=True)
            self._changed.wait(POLL)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while (job := self._next()) is not None:
            number, buffer, length = job
            try:
                etag = self._send(number, memoryview(buffer)[:length])
            except Exception as error:  # noqa: BLE001 - carried to the thread that writes
                with self._changed:
                    self._error = self._error or error
                    self._changed.notify_all()
                return
            with self._changed:
                self.etags[number] = etag
                self._out -= 1
                self._free.append(buffer)
                self._changed.notify_all()

    def _next(self) -> tuple[int, mmap.mmap, int] | None:
        with self._changed:
            while not self._waiting:
                if self._closed or self._error is not None:
                    return None
                self._changed.wait()
            return self._waiting.popleft()
