"""The table of contents is read as pg_restore reads it, for every major; the rest is refused."""

from __future__ import annotations

import io
import random
import re
from datetime import datetime

import psycopg
import pytest

from jobs.pgtools.archive.database import DatabaseProperties
from jobs.pgtools.archive.toc import Toc, parse_toc
from jobs.pgtools.errors import DamagedArchive, NewerArchive, PgToolsError, UnknownContent
from tests import servers
from tests.pgtools.archive import forge
from tests.pgtools.archive.conftest import Dumps, MakeDumps

LISTED = re.compile(r"([0-9]+); [0-9]+ [0-9]+ (.+)")
DEPENDS = re.compile(r";\tdepends on:(.*)")


def parsed(data: bytes) -> Toc:
    return parse_toc(io.BytesIO(data).read)


@pytest.mark.majors
@pytest.mark.parametrize("major", servers.MAJORS)
def test_every_major_is_read_as_pg_restore_lists_it(dumps_of: MakeDumps, major: int) -> None:
    dumps = dumps_of(major)
    toc = dumps.toc
    path = dumps.place.folder / "listed.dump"
    path.write_bytes(dumps.custom)
    lines = dumps.restore_tool("--list", "--verbose", str(path)).decode().split("\n")
    ours = [f"{e.dump_id} {e.kind} {e.schema or '-'} {e.name} {e.owner}" for e in toc.entries]
    assert ours == [f"{match[1]} {match[2]}" for match in map(LISTED.fullmatch, lines) if match]
    needs = [tuple(dict.fromkeys(map(int, match[1].split()))) for match in map(DEPENDS.match, lines) if match]
    assert [entry.depends_on for entry in toc.entries if entry.depends_on] == needs
    assert_head(toc, dumps, lines)
    assert_sample(toc)


def assert_head(toc: Toc, dumps: Dumps, lines: list[str]) -> None:
    major, minor = dumps.place.server.version
    assert (toc.format, toc.dbname, toc.server_major) == ("custom", dumps.place.name, major)
    assert toc.server_version.startswith(f"{major}.{minor}")
    assert toc.client_version.startswith(f"{major}.{minor}")
    assert toc.created is not None
    assert f"; Archive created at {toc.created:%Y-%m-%d %H:%M:%S}" in lines[1]
    assert f";     Dump Version: {toc.version[0]}.{toc.version[1]}-{toc.version[2]}" in lines
    assert toc.compression == ("zstd" if major >= 16 else "gzip")
    assert toc.reader_major == {14: 14, 15: 14, 16: 16, 17: 17, 18: 17}[major]


def assert_sample(toc: Toc) -> None:
    assert toc.owners() == {"app"}
    assert toc.grantees() == {"app", "sample reader"}
    assert toc.extensions() == ("citext", "pgcrypto")
    assert (toc.tablespaces(), toc.relations, toc.large_objects) == ((), 19, True)
    assert toc.database() == DatabaseProperties("UTF8", "libc", "C.UTF-8", "C.UTF-8", "")
    sections = {entry.kind: entry.section for entry in toc.entries}
    assert (sections["TABLE"], sections["TABLE DATA"], sections["BLOBS"]) == ("pre-data", "data", "data")
    assert (sections["INDEX"], sections["ACL"]) == ("post-data", "none")
    (copied,) = [entry for entry in toc.entries if entry.kind == "TABLE DATA" and entry.name == "from"]
    assert (copied.copy, copied.has_data) == ('COPY "select"."from" (a, b) FROM stdin;\n', True)


def test_lockable_is_no_less_than_what_a_restore_locks(dumps: Dumps) -> None:
    path = dumps.place.folder / "locks.dump"
    path.write_bytes(dumps.custom)
    sections = ("--section=pre-data", "--section=post-data")
    script = dumps.restore_tool("--file=-", *sections, str(path)).decode()
    statements = "\n".join(line for line in script.split("\n") if not line.startswith("\\"))
    server, name = dumps.place.server, "locks"
    server.drop_database(name)
    server.create_database(name)
    with psycopg.connect(server.superuser_url(name)) as session:
        session.execute(statements.encode())
        row = session.execute(
            """SELECT count(DISTINCT (locktype, database, relation, classid, objid)) FROM pg_locks
            WHERE pid = pg_backend_pid()"""
        ).fetchone()
        session.rollback()
    server.drop_database(name)
    assert row is not None
    assert row[0] <= dumps.toc.lockable <= 2 * row[0]


def test_damage_of_any_kind_is_an_error_of_ours(dumps: Dumps) -> None:
    chance = random.Random(17)  # noqa: S311
    end = max(dumps.custom.find(b"MATERIALIZED VIEW DATA"), 2000)
    for cut in [*range(80), *(chance.randrange(end) for _ in range(60))]:
        with pytest.raises(DamagedArchive):
            parsed(dumps.custom[:cut])
    read = 0
    for _ in range(300):
        damaged = bytearray(dumps.custom[: end + 1000])
        for _ in range(chance.choice((1, 1, 3))):
            # Half of them in the head, where every byte counts.
            damaged[chance.randrange(chance.choice((120, end)))] ^= 1 << chance.randrange(8)
        try:
            toc = parsed(bytes(damaged))
        except PgToolsError as error:
            assert isinstance(error, DamagedArchive | NewerArchive | UnknownContent)  # noqa: PT017
        else:
            read += 1
            assert toc.owners() is not None
            toc.grantees(), toc.database(), toc.lockable, toc.server_major
    assert 0 < read < 300


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PGDM",
        b"PGDMP" + bytes([1, 14, 0]) + bytes(40),
        forge.toc(sizes=(3, 8)),
        forge.toc(sizes=(4, 200)),
        forge.toc(format=4),
        forge.toc(count=1),
        forge.toc(count=-1),
        forge.toc(count=2**31 - 1),
        forge.toc([forge.entry(0)]),
        forge.toc([forge.entry(-5)]),
        forge.toc([forge.entry(1), forge.entry(1)]),
        forge.toc([forge.entry(section=9)]),
        forge.toc([forge.entry(kind="drop table")]),
        forge.toc([forge.entry(kind="")]),
        forge.toc([forge.entry(name=b"a\0b")]),
        forge.toc([forge.entry(deps=["1x"])]),
        forge.toc([forge.entry(deps=["-1"])]),
        forge.toc([forge.entry(file="../../../etc/passwd")]),
        forge.toc([forge.entry(file="/etc/passwd")]),
        forge.toc()[:-4] + forge.integer(1) + forge.integer(1) * 2 + b"\0\xff\xff\xff\x7f",
    ],
    ids=range(21),
)
def test_what_makes_no_sense_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedArchive, match=r"table of contents is damaged"):
        parsed(data)


def test_a_length_is_not_believed() -> None:
    class Endless:
        given = 0

        def read(self, size: int) -> bytes:
            self.given += size
            return b"\1" * size

    endless = Endless()
    head = io.BytesIO(forge.toc(count=3))
    with pytest.raises(DamagedArchive):
        parse_toc(lambda size: head.read(size) or endless.read(size))
    assert endless.given < 1 << 20


def test_archives_of_another_age_are_told_apart() -> None:
    with pytest.raises(NewerArchive, match=r"1\.17"):
        parsed(forge.toc(version=(1, 17, 0)))
    with pytest.raises(NewerArchive):
        parsed(forge.toc(version=(2, 0, 0)))
    with pytest.raises(UnknownContent, match=r"before 8\.4"):
        parsed(forge.toc(version=(1, 10, 0)))


def test_texts_are_in_the_encoding_of_the_dump() -> None:
    encoding = forge.entry(1, "ENCODING", "ENCODING", definition="SET client_encoding = 'LATIN1';\n")
    toc = parsed(forge.toc([encoding, forge.entry(2, name=b"k\xe4se")], dbname=b"k\xfcche"))
    assert (toc.dbname, toc.entries[1].name) == ("küche", "käse")
    toc = parsed(forge.toc([forge.entry(name=b"k\xe4se")], dbname=b"k\xfcche"))
    assert (toc.dbname, toc.entries[0].name) == ("k\\xfcche", "k\\xe4se")


def test_a_date_that_is_none_is_no_error() -> None:
    assert parsed(forge.toc()).created == datetime(2026, 6, 4, 3, 2, 1)
    assert parsed(forge.toc(created=(99, 2, 3, 4, 5, 2**31 - 1, 0))).created is None
