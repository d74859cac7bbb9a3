"""A tarred directory archive into a folder for `pg_restore --format=directory`.

What is written is what pg_dump writes, under its names, and nothing else. The files that pg_restore takes
names of other files from are checked, or it would read the worker's own files into the target.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import DamagedArchive
from .codec import decompressed
from .contents import TOC_NAMES, split
from .inputs import Stopped, Stream
from .tar import Member, TarReader
from .toc import parse_toc

PIECE = 1 << 20
DATA = re.compile(r"(?:[0-9]{1,10}|blob_[0-9]{1,10})\.dat(?:\.gz|\.lz4|\.zst)?")
LARGE_OBJECTS = re.compile(r"blobs(?:_[0-9]{1,10})?\.toc")
LARGE_OBJECT_LINE = re.compile(rb"[0-9]{1,10} blob_[0-9]{1,10}\.dat\n?")
LONGEST_LINE = 64


def unpack(
    chunks: Iterator[bytes], into: Path, *, room: Callable[[int], None], stop: Callable[[], bool]
) -> Path:
    """Take a decompressed tar from `chunks`, to their end; the folder to give to pg_restore, which is `into`.

    `into` is made if need be and must be empty. `room(n)` is called before n more bytes are written, and
    raises when they would not fit; `stop()` is asked as often. Raises DamagedArchive for a member that would
    get out of the folder, is no file, or comes twice, and when it is no archive; Stopped.
    """
    into.mkdir(mode=0o700, exist_ok=True)
    stream = Stream(chunks)
    unpacker = _Unpacker(TarReader(stream), into, room, stop)
    unpacker.all()
    for _ in stream.rest():
        unpacker.heed()
    unpacker.check()
    return into


class _Unpacker:
    def __init__(
        self, reader: TarReader, into: Path, room: Callable[[int], None], stop: Callable[[], bool]
    ) -> None:
        self._reader = reader
        self._into = into
        self._room = room
        self._stop = stop
        self._folder: str | None = None
        self._toc = ""

    def heed(self) -> None:
        if self._stop():
            raise Stopped("Unpacking was stopped.")

    def all(self) -> None:
        while (member := self._reader.next()) is not None:
            self.heed()
            name = self._name(member)
            if name in TOC_NAMES:
                if self._toc:
                    raise DamagedArchive(f"The tar file has two tables of contents: {self._toc} and {name}.")
                self._toc = name
            if name:
                self._write(name, member)

    def check(self) -> None:
        """What pg_restore will read names of files from."""
        if not self._toc:
            raise DamagedArchive("The tar file has no toc.dat in it, so it is no directory archive.")
        with (self._into / self._toc).open("rb") as file:
            content = iter(lambda: file.read(PIECE), b"")
            parse_toc(Stream(decompressed(content, TOC_NAMES[self._toc])).read)
        for path in self._into.iterdir():
            if LARGE_OBJECTS.fullmatch(path.name):
                self._check_large_objects(path)

    def _name(self, member: Member) -> str:
        """Under which name to write it; "" for what pg_restore has no use for."""
        folder, name = split(member)
        if member.kind == "folder":
            folder, name = f"{folder}/{name}".strip("/"), ""
        if member.name.startswith("/") or "/" in folder or ".." in (folder, name):
            raise _refused(member, "would be written outside of its folder")
        if member.kind not in {"file", "folder"}:
            raise _refused(member, f"is a {member.kind}")
        known = name in TOC_NAMES or DATA.fullmatch(name) or LARGE_OBJECTS.fullmatch(name)
        if not known:
            return ""
        if self._folder not in (None, folder):
            raise _refused(member, "is in another folder than the rest")
        self._folder = folder
        return name

    def _write(self, name: str, member: Member) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._into / name, flags, 0o600)
        except FileExistsError as error:
            raise _refused(member, "is in it twice") from error
        with open(descriptor, "wb", buffering=0) as file:
            while piece := self._reader.read(PIECE):
                self.heed()
                self._room(len(piece))
                written = 0
                while written < len(piece):
                    written += file.write(piece[written:])

    def _check_large_objects(self, path: Path) -> None:
        with path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                if not LARGE_OBJECT_LINE.fullmatch(line):
                    raise DamagedArchive(
                        f"{path.name} in the archive is damaged: a line of it names no large object's file."
                    )
                self.heed()


def _refused(member: Member, why: str) -> DamagedArchive:
    shown = ascii(member.name)[1:-1][:200]
    return DamagedArchive(f"The tar file is not unpacked: {shown} {why}. pg_dump writes no such thing.")
