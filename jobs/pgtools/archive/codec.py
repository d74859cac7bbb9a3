"""Which compression lies around a dump, and the bytes without it. The input is untrusted, memory bounded."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, cast

import zstandard

from ..errors import DamagedArchive
from . import patience
from .frames import whole_frames

CODECS = ("none", "gzip", "zstd")
GZIP = b"\x1f\x8b\x08"
ZSTD = b"\x28\xb5\x2f\xfd"
# The last three bytes of a frame that a decompressor skips; the first is 0x50 to 0x5f.
SKIPPED = b"\x2a\x4d\x18"
PIECE = 1 << 20
# What `zstd -d` takes without being told to; beyond it a few bytes could ask for gigabytes of memory.
MOST_WINDOW = 1 << 27
WITH_GZIP_HEADER = 31


def codec_of(head: bytes) -> str:
    """One of CODECS, from a file's first bytes (at least four, or all there are)."""
    if head.startswith(GZIP):
        return "gzip"
    if head.startswith(ZSTD) or (head[1:4] == SKIPPED and 0x50 <= head[0] <= 0x5F):
        return "zstd"
    return "none"


def decompressed(chunks: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """The content, in pieces of at most 1 MiB. Raises DamagedArchive where it cannot be decompressed, and
    Stopped as `patience` has it: a few kilobytes can hold terabytes."""
    for piece in DECODERS[codec](chunks):
        patience.ask()
        yield piece


def _plain(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), PIECE):
            yield chunk[start : start + PIECE]


def _gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Members follow each other; zeros may follow the last one, as tapes and some tools pad."""
    member = zlib.decompressobj(WITH_GZIP_HEADER)
    complete = True
    for chunk in chunks:
        while chunk:
            if complete:
                if not chunk.lstrip(b"\0"):
                    break
                member, complete = zlib.decompressobj(WITH_GZIP_HEADER), False
            piece = _inflate(member, chunk)
            if piece:
                yield piece
            complete = member.eof
            chunk = member.unused_data if complete else member.unconsumed_tail
    if not complete:
        yield from _rest(member)


def _rest(member: zlib._Decompress) -> Iterator[bytes]:
    """What a member still holds once the input is over; it must end there."""
    while not member.eof:
        piece = _inflate(member, member.unconsumed_tail)
        if not piece and not member.eof:
            raise DamagedArchive("The gzip data break off before their end. Make or upload the file anew.")
        yield piece


def _inflate(member: zlib._Decompress, data: bytes) -> bytes:
    try:
        return member.decompress(data, PIECE)
    except zlib.error as error:
        raise DamagedArchive(f"The gzip data are damaged: {error}. Make or upload the file anew.") from error


class _Source:
    """Chunks as the file that zstandard reads from."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def read(self, size: int) -> bytes:
        if not self._left:
            self._left = next(self._chunks, b"")
        piece, self._left = self._left[:size], self._left[size:]
        return piece


def _zstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW)
    source = cast(IO[bytes], _Source(_plain(whole_frames(chunks))))
    with decoder.stream_reader(source, read_across_frames=True) as reader:
        while True:
            try:
                piece = reader.read(PIECE)
            except zstandard.ZstdError as error:
                raise DamagedArchive(
                    f"The zstd data are damaged or need more than {MOST_WINDOW >> 20} MiB of memory: {error}."
                    " Make or upload the file anew."
                ) from error
            if not piece:
                return
            yield piece


DECODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "none": _plain,
    "gzip": _gzip,
    "zstd": _zstd,
}
