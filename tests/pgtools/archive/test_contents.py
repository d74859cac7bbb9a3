"""Every format and codec is told by content, with as few bytes read as possible."""

from __future__ import annotations

import gzip
import subprocess
import tarfile
from collections.abc import Callable

import pytest
import zstandard

from jobs.pgtools.archive.contents import inspect
from jobs.pgtools.archive.inputs import Stopped
from jobs.pgtools.errors import DamagedArchive, UnknownContent
from tests.pgtools.archive import forge
from tests.pgtools.archive.conftest import Dumps, contents_of

Pack = Callable[[bytes], bytes]
CODECS: dict[str, Pack] = {"none": bytes, "gzip": gzip.compress, "zstd": zstandard.compress}
FORMATS = ("custom", "tar", "directory", "plain")


def artifact(dumps: Dumps, kind: str) -> bytes:
    return dumps.tarred() if kind == "directory" else bytes(getattr(dumps, kind))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", FORMATS)
def test_format_and_codec_are_told_by_content(dumps: Dumps, kind: str, codec: str) -> None:
    contents = contents_of(CODECS[codec](artifact(dumps, kind)))
    major, minor = dumps.place.server.version
    assert (contents.format, contents.codec, contents.server_major) == (kind, codec, major)
    words = contents.in_words()
    assert words.endswith(f"made by pg_dump {major}.{minor} from PostgreSQL {major}.{minor}")
    assert words.startswith("" if codec == "none" else f"{codec}-compressed ")
    if contents.toc is None:
        assert kind == "plain"
    else:
        assert [e.name for e in contents.toc.entries] == [e.name for e in dumps.toc.entries]


def test_words_say_format_compression_and_origin(dumps: Dumps) -> None:
    major, minor = dumps.place.server.version
    version = f"{major}.{minor}"
    words = contents_of(dumps.custom).in_words()
    assert words == f"custom archive, zstd, made by pg_dump {version} from PostgreSQL {version}"


def test_sizes_are_told_where_the_container_tells(dumps: Dumps) -> None:
    data = {entry.dump_id: entry.name for entry in dumps.toc.entries if entry.has_data}
    assert contents_of(dumps.custom).sizes == {}
    assert contents_of(gzip.compress(dumps.tar)).sizes == {}
    seekable = contents_of(dumps.seekable)
    assert set(seekable.sizes) == {entry.dump_id for entry in seekable.toc.entries if entry.has_data}  # type: ignore[union-attr]
    assert 0 < sum(seekable.sizes.values()) < len(dumps.seekable)
    sizes = {data[dump_id]: size for dump_id, size in contents_of(dumps.tar).sizes.items()}
    assert (sizes["from"], sizes["4242"], sizes["4243"]) == (len("1\t2\n2\t3\n\\.\n\n\n"), 10_000, 0)
    inside = contents_of(dumps.tarred()).sizes
    names = {data[dump_id]: dump_id for dump_id in inside}
    assert inside[names["kinds"]] == (dumps.directory / f"{names['kinds']}.dat.gz").stat().st_size


@pytest.mark.parametrize("prefix", ["", "./", "dump/", "./a b/", "é" * 120 + "/"])
@pytest.mark.parametrize("style", ["ustar", "gnu", "pax"])
def test_a_directory_may_be_packed_in_any_way(dumps: Dumps, prefix: str, style: str) -> None:
    formats = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    toc = (dumps.directory / "toc.dat").read_bytes()
    members = [(f"{prefix}1.dat.gz", b"x" * 700), (f"{prefix}toc.dat", toc)]
    if style == "ustar" and len(prefix) > 100:
        return
    contents = contents_of(forge.tar(members, format=formats[style]))
    assert (contents.format, contents.toc and contents.toc.dbname) == ("directory", dumps.place.name)


def test_a_packed_folder_of_gnu_tar_is_read(dumps: Dumps) -> None:
    argv = ["tar", "-C", str(dumps.directory), "-cf", "-", "."]
    packed = subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout
    assert contents_of(packed).format == contents_of(gzip.compress(packed)).format == "directory"


def test_long_members_are_jumped_over(dumps: Dumps) -> None:
    long, toc = bytes(5 << 20), (dumps.directory / "toc.dat").read_bytes()
    packed = forge.tar([("1.dat", long), ("2.dat", long), ("3.dat", b"short"), ("toc.dat", toc)])
    asked: list[int] = []
    assert contents_of(packed, asked).format == "directory"
    assert asked == [0, 0, (5 << 20) + 512, 2 * ((5 << 20) + 512)]


def test_what_breaks_off_is_damaged(dumps: Dumps) -> None:
    for whole in (dumps.tar, dumps.tarred(), gzip.compress(dumps.tarred()), dumps.seekable):
        for cut in (len(whole) // 2, len(whole) - 20_000):
            with pytest.raises(DamagedArchive):
                contents_of(whole[:cut])
    with pytest.raises(DamagedArchive, match="break off before"):
        contents_of(gzip.compress(dumps.custom)[:400])


def test_other_tar_files_are_named(dumps: Dumps) -> None:
    with pytest.raises(UnknownContent, match=r"no toc\.dat in it, but a\.txt, b\.txt\."):
        contents_of(forge.tar([("x/a.txt", b"hello"), ("x/b.txt", b"")]))
    with pytest.raises(UnknownContent, match="pg_basebackup"):
        contents_of(gzip.compress(forge.tar([("backup_label", b"START WAL"), ("PG_VERSION", b"17\n")])))
    with pytest.raises(UnknownContent, match="but nothing"):
        contents_of(forge.tar([("folder", b"")], type=tarfile.DIRTYPE))
    with pytest.raises(UnknownContent, match="without the files that belong to it"):
        contents_of((dumps.directory / "toc.dat").read_bytes())
    with pytest.raises(DamagedArchive, match="is a custom archive"):
        contents_of(forge.tar([("toc.dat", dumps.custom)]))


@pytest.mark.parametrize(
    "packed",
    [
        forge.tar([("1.dat", b"x")] * 3)[:2048] + b"\xff" * 512 + bytes(1024),
        forge.tar([("1.dat", b"x")], pax_headers={"size": "-5"}),
        forge.tar([("1.dat", b"x")], pax_headers={"size": "99999999999999999999"}),
        forge.tar([("1.dat", b"x")], pax_headers={"GNU.sparse.major": "1"}),
        forge.tar([("y" * 2_000_000, b"")], format=tarfile.GNU_FORMAT),
    ],
    ids=["header", "negative size", "huge size", "sparse", "long name"],
)
def test_hostile_headers_are_refused(packed: bytes) -> None:
    with pytest.raises(DamagedArchive):
        contents_of(packed)


def test_a_bomb_is_given_up() -> None:
    packed = zstandard.compress(forge.tar([("1.dat", bytes(90 << 20))]))
    with pytest.raises(DamagedArchive, match="1100 times its size"):
        contents_of(packed)


def test_inspecting_stops_when_told_to() -> None:
    packed = gzip.compress(forge.tar([("1.dat", bytes(4 << 20))]))
    answers = iter([False, False])
    with pytest.raises(Stopped):
        inspect(lambda start: iter([packed[start:]]), len(packed), stop=lambda: next(answers, True))


def test_a_chain_of_extended_headers_is_no_recursion() -> None:
    link = forge.tar([("z" * 300, b"")], format=tarfile.GNU_FORMAT)[:1024]
    with pytest.raises(UnknownContent):
        contents_of(link * 3000 + forge.tar([("1.dat", b"x")]))
