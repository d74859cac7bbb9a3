"""Sees that zstd data end where a frame ends, which the streaming decompressor does not tell.

Follows the layout of frames and blocks in RFC 8878, section 3; what is inside a block is the decompressor's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from ..errors import DamagedArchive

SKIPPABLE = range(0x184D2A50, 0x184D2A60)
RLE = 1
DICTIONARY_BYTES = (0, 1, 2, 4)
CONTENT_SIZE_BYTES = (0, 2, 4, 8)
CHECKSUM_BYTES = 4

# Yields how many bytes come next and is sent them, or b"" where it asked to skip them (a negative number).
Walk = Generator[int, bytes, None]


def whole_frames(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks as they are; DamagedArchive after the last one when a frame is not complete."""
    walker = _Walker()
    for chunk in chunks:
        walker.feed(chunk)
        yield chunk
    if not walker.between_frames:
        raise DamagedArchive("The zstd data break off before their end. Make or upload the file anew.")


class _Walker:
    def __init__(self) -> None:
        self._walk = _frame()
        self._wanted = next(self._walk)
        self._held = b""
        self.between_frames = True

    def feed(self, chunk: bytes) -> None:
        at = 0
        while at < len(chunk):
            self.between_frames = False
            at = self._skip(chunk, at) if self._wanted < 0 else self._take(chunk, at)

    def _skip(self, chunk: bytes, at: int) -> int:
        step = min(-self._wanted, len(chunk) - at)
        self._wanted += step
        if not self._wanted:
            self._next(b"")
        return at + step

    def _take(self, chunk: bytes, at: int) -> int:
        step = min(self._wanted - len(self._held), len(chunk) - at)
        self._held += chunk[at : at + step]
        if len(self._held) == self._wanted:
            held, self._held = self._held, b""
            self._next(held)
        return at + step

    def _next(self, answer: bytes) -> None:
        try:
            self._wanted = self._walk.send(answer)
        except StopIteration:
            self._walk = _frame()
            self._wanted = next(self._walk)
            self.between_frames = True


def _frame() -> Walk:
    magic = int.from_bytes((yield 4), "little")
    if magic in SKIPPABLE:
        size = int.from_bytes((yield 4), "little")
        if size:
            yield -size
        return
    descriptor = (yield 1)[0]
    rest = _header_bytes(descriptor)
    if rest:
        yield -rest
    last = False
    while not last:
        block = int.from_bytes((yield 3), "little")
        last = bool(block & 1)
        size = 1 if block >> 1 & 3 == RLE else block >> 3
        if size:
            yield -size
    if descriptor >> 2 & 1:
        yield -CHECKSUM_BYTES


def _header_bytes(descriptor: int) -> int:
    """What of a frame's header follows the descriptor: window, dictionary and size of the content."""
    single_segment = descriptor >> 5 & 1
    content_size = CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    return (1 - single_segment) + DICTIONARY_BYTES[descriptor & 3] + content_size
