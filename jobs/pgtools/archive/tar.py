"""Walks a tar file header by header: no recursion, no member held in memory, every number checked.

tarfile itself follows chains of extended headers by recursion and reads each of them whole, however long it
claims to be; here it only takes apart single headers of 512 bytes.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from typing import Protocol

from ..errors import DamagedArchive

BLOCK = 512
# A path has at most 4096 bytes, and little else is said of a file there.
MOST_EXTENDED = 1 << 20
MOST_MEMBERS = 5_000_000
MOST_SIZE = 1 << 50
FILES = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE})
EXTENSIONS = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME}
    | {tarfile.GNUTYPE_LONGLINK}
)
KINDS = {
    tarfile.DIRTYPE: "folder",
    tarfile.LNKTYPE: "link",
    tarfile.SYMTYPE: "link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "pipe",
    tarfile.GNUTYPE_SPARSE: "sparse file",
} | dict.fromkeys(FILES, "file")


class Source(Protocol):
    """Bytes in order; both give fewer than asked for only at the end."""

    def read(self, size: int) -> bytes: ...

    def skip(self, size: int) -> int: ...


@dataclass(frozen=True)
class Member:
    """`kind`: "file", "folder" or what it is instead, e.g. "link"; `size` in bytes, 0 for all but files."""

    name: str
    size: int
    kind: str


class TarReader:
    """One member after the other. Raises DamagedArchive when it makes no sense or has no proper end."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._left = 0
        self._padding = 0
        self._members = 0

    def next(self) -> Member | None:
        """The next member; what was not read of the one before is passed over. None at the end."""
        extended: dict[str, str] = {}
        while True:
            self._pass_over()
            header = self._header()
            if header is None:
                return None
            self._enter(header.size)
            if header.type not in EXTENSIONS:
                break
            extended |= self._extended(header)
        name = extended.get("path", header.name)
        kind = KINDS.get(header.type, "member of an unknown kind")
        self._enter(_size(extended, header) if kind == "file" else 0)
        return Member(name, self._left, kind)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of the current member; b"" at its end."""
        piece = self._source.read(min(size, self._left))
        if self._left and not piece:
            raise broken_off()
        self._left -= len(piece)
        return piece

    def _enter(self, size: int) -> None:
        self._left, self._padding = size, -size % BLOCK

    def _pass_over(self) -> None:
        size = self._left + self._padding
        if self._source.skip(size) < size:
            raise broken_off()

    def _header(self) -> tarfile.TarInfo | None:
        block = self._source.read(BLOCK)
        if len(block) < BLOCK:
            raise broken_off()
        if not block.strip(b"\0"):
            return None
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise DamagedArchive(f"The tar file has more than {MOST_MEMBERS} members.")
        return header_of(block)

    def _extended(self, header: tarfile.TarInfo) -> dict[str, str]:
        """What a header before the one of a member says about it: its path and size, if it does."""
        if header.size > MOST_EXTENDED:
            raise DamagedArchive("The tar file is damaged: what should be a file's name is too long.")
        content = b"".join(iter(lambda: self.read(BLOCK), b""))
        if header.type == tarfile.GNUTYPE_LONGNAME:
            return {"path": _text(content.split(b"\0", 1)[0])}
        if header.type in {tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE}:
            return _records(content)
        return {}


def header_of(block: bytes) -> tarfile.TarInfo:
    """Raises DamagedArchive when 512 bytes are no header of a tar file."""
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError) as error:
        raise DamagedArchive(f"The tar file is damaged: {error}. Make or upload it anew.") from error
    if not 0 <= header.size <= MOST_SIZE:
        raise DamagedArchive("The tar file is damaged: a size in it makes no sense.")
    header.name = _text(header.name.encode("utf-8", "surrogateescape"))
    return header


def broken_off() -> DamagedArchive:
    return DamagedArchive("The tar file breaks off before its end. Make or upload it anew.")


def _size(extended: dict[str, str], header: tarfile.TarInfo) -> int:
    """Files from 8 GiB on have their size in an extended header."""
    written = extended.get("size")
    if written is None:
        return header.size
    if not (written.isascii() and written.isdigit() and len(written) < 20 and int(written) <= MOST_SIZE):
        raise DamagedArchive("The tar file is damaged: a size in it makes no sense.")
    return int(written)


def _records(content: bytes) -> dict[str, str]:
    """`length key=value\\n`, the length counting the whole record (POSIX, pax Extended Header)."""
    found: dict[str, str] = {}
    at = 0
    while content[at : at + 1].isdigit():
        digits = content[at : at + 8].split(b" ", 1)[0]
        length = int(digits) if digits.isdigit() else 0
        record = content[at + len(digits) + 1 : at + length]
        if length <= len(digits) + 1 or not record.endswith(b"\n"):
            raise DamagedArchive("The tar file is damaged: an extended header in it makes no sense.")
        key, _, value = record[:-1].partition(b"=")
        if key in {b"path", b"size"}:
            found[key.decode()] = _text(value)
        if key.startswith(b"GNU.sparse."):
            raise DamagedArchive("The tar file holds a sparse file. Pack it again without --sparse.")
        at += length
    return found


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
