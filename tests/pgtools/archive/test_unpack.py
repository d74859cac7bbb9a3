"""A tarred directory becomes the folder it was, and nothing is written anywhere else."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.pgtools.archive.inputs import Stopped
from jobs.pgtools.archive.unpack import unpack
from jobs.pgtools.errors import DamagedArchive
from tests.pgtools.archive import forge
from tests.pgtools.archive.conftest import Dumps

Unpack = Callable[[bytes], Path]
TOC = forge.toc([forge.entry(1, "BLOBS", "BLOBS", section=3, has_data=1, file="blobs_1.toc")])


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def take(into: Path) -> Unpack:
    def run(packed: bytes) -> Path:
        chunks = (packed[at : at + 5000] for at in range(0, len(packed), 5000))
        return unpack(chunks, into, room=lambda _: None, stop=lambda: False)

    return run


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("prefix", ["", "./", "dump/"])
def test_the_folder_comes_out_as_it_was(dumps: Dumps, take: Unpack, into: Path, prefix: str) -> None:
    assert take(dumps.tarred(prefix=prefix)) == into
    assert files(into) == files(dumps.directory)
    assert dumps.restore_tool("--list", "--format=directory", str(into)).count(b"\n") > 90
    assert {path.stat().st_mode & 0o777 for path in into.iterdir()} == {0o600}


def test_what_pg_dump_does_not_write_is_left_away(take: Unpack) -> None:
    members = [("a/toc.dat", TOC), ("a/.DS_Store", b"x"), ("a/._toc.dat", b"x"), ("a/restore.sql", b"x")]
    assert set(files(take(forge.tar([*members, ("a/1.dat.lz4", b"x")])))) == {"toc.dat", "1.dat.lz4"}


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (forge.tar([("../1.dat", b"x")]), "outside"),
        (forge.tar([("/tmp/1.dat", b"x")]), "outside"),
        (forge.tar([("a/../../1.dat", b"x")]), "outside"),
        (forge.tar([("a/b/1.dat", b"x")]), "outside"),
        (forge.tar([("../1.dat" + "/" * 200 + "1.dat", b"x")]), "outside"),
        (forge.tar([("..", b"")], type=tarfile.DIRTYPE), "outside"),
        (forge.tar([("1.dat", b"")], type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link"),
        (forge.tar([("1.dat", b"")], type=tarfile.LNKTYPE, linkname="toc.dat"), "is a link"),
        (forge.tar([("1.dat", b"")], type=tarfile.CHRTYPE), "is a device"),
        (forge.tar([("1.dat", b"")], type=tarfile.FIFOTYPE), "is a pipe"),
        (forge.tar([("1.dat", b"x"), ("1.dat", b"y")]), "twice"),
        (forge.tar([("a/1.dat", b"x"), ("b/2.dat", b"y")]), "another folder"),
        (forge.tar([("toc.dat", TOC), ("toc.dat.gz", TOC)]), "two tables of contents"),
        (forge.tar([("1.dat", b"x")]), "no directory archive"),
        (forge.tar([("toc.dat", TOC)])[:700], "breaks off"),
        (forge.tar([("toc.dat", b"PGDMP")]), "table of contents is damaged"),
        (forge.tar([("toc.dat", forge.toc([forge.entry(file="../x")]))]), "no file of the archive"),
        (forge.tar([("toc.dat", TOC), ("blobs_1.toc", b"7 ../../etc/passwd\n")]), r"blobs_1\.toc"),
        (forge.tar([("toc.dat", TOC), ("blobs.toc", b"7 blob_7.dat\n8 /etc/passwd")]), r"blobs\.toc"),
        (forge.tar([("toc.dat", TOC), ("blobs.toc", b"7 blob_7.dat" + b" " * 100)]), r"blobs\.toc"),
    ],
    ids=range(20),
)
def test_hostile_tar_files_are_refused(take: Unpack, tmp_path: Path, packed: bytes, words: str) -> None:
    with pytest.raises(DamagedArchive, match=words):
        take(packed)
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_room_is_asked_for_before_bytes_are_written(into: Path) -> None:
    asked: list[int] = []

    def room(size: int) -> None:
        asked.append(size)
        if sum(asked) > 3 << 20:
            raise OSError(28, "full")

    packed = io.BytesIO(forge.tar([("1.dat", bytes(10 << 20)), ("toc.dat", TOC)]))
    with pytest.raises(OSError, match="full"):
        unpack(iter(lambda: packed.read(1 << 16), b""), into, room=room, stop=lambda: False)
    assert max(asked) <= 1 << 20
    assert (into / "1.dat").stat().st_size == sum(asked[:-1])


def test_it_stops_when_told_to(into: Path) -> None:
    def endless() -> Iterator[bytes]:
        yield forge.tar([("toc.dat", TOC)])
        while True:
            yield bytes(1000)

    answers = iter([False] * 5)
    with pytest.raises(Stopped):
        unpack(endless(), into, room=lambda _: None, stop=lambda: next(answers, True))
