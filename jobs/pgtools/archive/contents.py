"""What an artifact holds: format, compression, table of contents; read from as little of it as possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import DamagedArchive, UnknownContent
from . import patience, plain
from .codec import codec_of, decompressed
from .inputs import Ranged, Ranges, Stream, end, never
from .sizes import from_members, from_offsets
from .sniff import sniff
from .tar import Member, TarReader
from .toc import Toc, major_of, parse_toc

HEAD_BYTES = 64 << 10
TOC_NAMES = {"toc.dat": "none", "toc.dat.gz": "gzip", "toc.dat.zst": "zstd"}
# What pg_dump --format=tar adds and a directory does not have.
SCRIPT = "restore.sql"
FORMATS = {
    "custom": "custom archive",
    "tar": "tar archive",
    "directory": "directory archive as a tar file",
    "plain": "plain SQL",
}
SHOWN = 5
# gzip cannot do better, zstd could go on for days.
MOST_RATIO = 1100
LEAST_DECOMPRESSED = 64 << 20


@dataclass(frozen=True)
class Contents:
    """`format`: "custom", "tar" (pg_dump's own), "directory" (as a tar file) or "plain"; `codec`: "none",
    "gzip" or "zstd", around all of it. `toc`: None for plain SQL. `sizes`: dump id -> bytes of its data in
    the artifact, as far as the container tells. `plain_version` and `plain_server_version`: pg_dump's and
    the server's, from the head of plain SQL.
    """

    format: str
    codec: str
    toc: Toc | None
    sizes: Mapping[int, int] = field(default_factory=dict)
    plain_version: str = ""
    plain_server_version: str = ""

    @property
    def server_version(self) -> str:
        return self.toc.server_version if self.toc else self.plain_server_version

    @property
    def client_version(self) -> str:
        return self.toc.client_version if self.toc else self.plain_version

    @property
    def server_major(self) -> int | None:
        """Of the server that was dumped, where it is known."""
        return major_of(self.server_version)

    def in_words(self) -> str:
        """E.g. "custom archive, zstd, made by pg_dump 17.6 from PostgreSQL 16.4"."""
        around = f"{self.codec}-compressed " if self.codec != "none" else ""
        inside = f", {self.toc.compression}" if self.toc and self.toc.compression != "none" else ""
        return around + FORMATS[self.format] + inside + self._origin()

    def _origin(self) -> str:
        client, server = _short(self.client_version), _short(self.server_version)
        made = f", made by pg_dump {client}" if client else ""
        return made + (f" from PostgreSQL {server}" if server else "")


def inspect(read: Ranges, size: int, *, stop: Callable[[], bool] = never) -> Contents:
    """`read(start)` yields the object's bytes from offset `start`; `size` is how many it has.

    Raises UnknownContent, DamagedArchive or NewerArchive, and Stopped when `stop()` becomes true. Data of
    tables are neither read nor checked, except in passing where a compressed tar has its table of contents
    behind them: that takes as long as decompressing it.
    """
    with patience.until(stop):
        return _inspected(read, size)


def _inspected(read: Ranges, size: int) -> Contents:
    chunks = read(0)
    try:
        raw = Stream(chunks)
        head = raw.read(HEAD_BYTES)
        codec = codec_of(head)
        stream = Stream(_guarded(decompressed(_joined(head, raw.rest()), codec), size))
        start = stream.read(HEAD_BYTES)
        kind = sniff(start)
        whole = Stream(_joined(start, stream.rest()))
        if kind == "plain":
            client, server = plain.versions(start)
            return Contents("plain", codec, None, plain_version=client, plain_server_version=server)
        if kind == "custom":
            toc = parse_toc(whole.read)
            if toc.format != "custom":
                raise UnknownContent(LONELY_TOC)
            return Contents("custom", codec, toc, from_offsets(toc, size) if codec == "none" else {})
        if codec != "none":
            return _tar(TarReader(whole), codec, complete=False)
    finally:
        end(chunks)
    ranged = Ranged(read, size)
    try:
        return _tar(TarReader(ranged), codec, complete=True)
    finally:
        ranged.close()


LONELY_TOC = (
    "This is the toc.dat of a directory archive without the files that belong to it. Pack the whole folder"
    " with tar, and take that."
)


def _tar(reader: TarReader, codec: str, *, complete: bool) -> Contents:
    """`complete`: look at all members, which tells sizes; else stop behind the table of contents."""
    toc: Toc | None = None
    found: dict[str, int] = {}
    flat = first = True
    while (member := reader.next()) is not None:
        folder, name = split(member)
        flat &= not folder
        if member.kind == "file" and name in TOC_NAMES and toc is None:
            first = not found
            toc = _toc(reader, TOC_NAMES[name])
            if not complete:
                break
        if member.kind == "file":
            found[name] = member.size
    if toc is None:
        raise _no_dump(list(found))
    own = flat and first and toc.compression == "none" and (SCRIPT in found or not complete)
    sizes = from_members(toc, found) if complete else {}
    return Contents("tar" if own else "directory", codec, toc, sizes)


def split(member: Member) -> tuple[str, str]:
    """The folder ("" for none) and the name in it, of a member's path."""
    path = member.name.removeprefix("./")
    folder, _, name = path.rpartition("/")
    return folder, name


def _toc(reader: TarReader, codec: str) -> Toc:
    content = iter(lambda: reader.read(1 << 18), b"")
    toc = parse_toc(Stream(decompressed(content, codec)).read)
    if toc.format == "custom":
        raise DamagedArchive("The toc.dat in this tar file is a custom archive. Restore that by itself.")
    return toc


def _no_dump(names: list[str]) -> UnknownContent:
    if {"PG_VERSION", "backup_label"} & set(names):
        return UnknownContent(
            "This is a physical copy of a server's data directory, as pg_basebackup makes it. It replaces a"
            " whole server and cannot be restored into a database; pgbr needs a dump of pg_dump."
        )
    shown = ", ".join(ascii(name)[1:-1] for name in names[:SHOWN]) or "nothing"
    more = " and more" if len(names) > SHOWN else ""
    return UnknownContent(
        f"This tar file holds no dump: there is no toc.dat in it, but {shown}{more}. Pack the folder that"
        " pg_dump --format=directory made, or take the file of pg_dump --format=tar as it is."
    )


def _joined(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _guarded(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Bounds what is decompressed by the size of what was compressed."""
    left = LEAST_DECOMPRESSED + MOST_RATIO * size
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            raise DamagedArchive(
                f"The file decompresses to more than {MOST_RATIO} times its size, as no dump does."
                " Decompress it before you hand it in, if it is one."
            )
        yield piece


def _short(version: str) -> str:
    match = re.match(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}[a-z0-9]{0,6}", version)
    return match[0] if match else ""
