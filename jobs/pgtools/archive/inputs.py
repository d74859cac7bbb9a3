"""Reading an object's bytes in order, with jumps: from a store that gives ranges, or from a stream."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from ..errors import PgToolsError

# Asking a store for another range takes about as long as reading this much on.
WORTH_A_JUMP = 4 << 20

Ranges = Callable[[int], Iterator[bytes]]


class Stopped(PgToolsError):
    """Whoever asked for it wants no answer any more."""


def never() -> bool:
    return False


class Stream:
    """Chunks as a file that is only read forwards."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = b""
        self._at = 0

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end."""
        parts = []
        while size and self._more():
            part = self._chunk[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def skip(self, size: int) -> int:
        """How many bytes were passed over; fewer than asked for only at the end."""
        left = size
        while left and self._more():
            step = min(left, len(self._chunk) - self._at)
            self._at += step
            left -= step
        return size - left

    def rest(self) -> Iterator[bytes]:
        """All that was not read yet."""
        while self._more():
            piece, self._at = self._chunk[self._at :], len(self._chunk)
            yield piece

    def _more(self) -> bool:
        while self._at >= len(self._chunk):
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._chunk, self._at = chunk, 0
        return True


class Ranged:
    """An object that can be read from any offset; long gaps are jumped over. Close it after use."""

    def __init__(self, read: Ranges, size: int) -> None:
        self._open = read
        self._size = size
        self._at = 0
        self._chunks: Iterator[bytes] | None = None
        self._stream = Stream(iter(()))

    def read(self, size: int) -> bytes:
        if self._chunks is None:
            self._chunks = self._open(self._at)
            self._stream = Stream(self._chunks)
        piece = self._stream.read(size)
        self._at += len(piece)
        return piece

    def skip(self, size: int) -> int:
        if self._chunks is not None and size < WORTH_A_JUMP:
            done = self._stream.skip(size)
        else:
            self.close()
            done = max(0, min(size, self._size - self._at))
        self._at += done
        return done

    def close(self) -> None:
        """Give the store's connection back."""
        chunks, self._chunks = self._chunks, None
        end(chunks)


def end(chunks: Iterator[bytes] | None) -> None:
    """Let a generator that is not read to its end release what it holds."""
    if isinstance(chunks, Generator):
        chunks.close()
