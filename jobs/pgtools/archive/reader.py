"""The primitives of an archive's header and table of contents, with a bound on everything.

As ReadInt, ReadStr and ReadOffset of PostgreSQL's src/bin/pg_dump/pg_backup_archiver.c read them.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from ..errors import DamagedArchive

READ_BYTES = 1 << 18
# A table of contents of 100,000 tables has about 100 MiB.
MOST_BYTES = 256 << 20
MOST_STRING = 64 << 20
SIZES = (SHORT, LONG) = (4, 8)
LENGTH = Struct("<BI")
OFFSET_FLAGS = (NOT_SET, SET, NO_DATA) = (1, 2, 3)

Read = Callable[[int], bytes]


class Reader:
    """Reads ahead: how far `read` got says nothing about where the table of contents ends."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._data = b""
        self._at = 0
        self._total = 0
        self.int_size = 4
        self.offset_size = 8

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            self._fill(size)
            end = size
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def byte(self) -> int:
        return self.take(1)[0]

    def integer(self) -> int:
        raw = self.take(1 + self.int_size)
        number = int.from_bytes(raw[1:], "little")
        return -number if raw[0] else number

    def string(self) -> bytes | None:
        """None for SQL's and C's NULL."""
        text = self._short_string() if self.int_size == SHORT else None
        return self._long_string() if text is None else text

    def _short_string(self) -> bytes | None:
        """One that lies in the buffer, as almost all do: an archive may have millions."""
        start = self._at + LENGTH.size
        if start > len(self._data):
            return None
        negative, length = LENGTH.unpack_from(self._data, self._at)
        if negative or start + length > len(self._data):
            return None
        self._at = start + length
        return _checked(self._data[start : self._at])

    def _long_string(self) -> bytes | None:
        length = self.integer()
        if length < 0:
            return None
        if length > MOST_STRING:
            raise damaged(f"a text claims to have {length} bytes")
        return _checked(self.take(length))

    def offset(self) -> int | None:
        """Where an entry's data begin in the file, if the file says so."""
        flag = self.byte()
        if flag not in OFFSET_FLAGS:
            raise damaged(f"{flag} is no flag of an offset")
        offset = int.from_bytes(self.take(self.offset_size), "little")
        return offset if flag == SET else None

    def _fill(self, size: int) -> None:
        """Make the next `size` bytes the head of the buffer."""
        parts = [self._data[self._at :]]
        have = len(parts[0])
        while have < size:
            part = self._read(max(size - have, READ_BYTES))
            if not part:
                raise damaged("it breaks off")
            have += len(part)
            self._total += len(part)
            parts.append(part)
            if self._total > MOST_BYTES + READ_BYTES:
                raise damaged(f"it is longer than {MOST_BYTES >> 20} MiB")
        self._data, self._at = b"".join(parts), 0


def _checked(text: bytes) -> bytes:
    if b"\0" in text:
        raise damaged("a text has a zero byte in it")
    return text


def damaged(why: str) -> DamagedArchive:
    return DamagedArchive(
        f"The archive's table of contents is damaged: {why}. Take another copy, or make the dump anew."
    )
