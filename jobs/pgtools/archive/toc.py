"""The table of contents of a custom archive, or of the toc.dat of a directory or tar archive.

Follows ReadHead and ReadToc of PostgreSQL's src/bin/pg_dump/pg_backup_archiver.c and _ReadExtraToc of
pg_backup_custom.c (an offset), pg_backup_directory.c and pg_backup_tar.c (a file's name). The input is
untrusted: whatever it is, the answer is a Toc, DamagedArchive, NewerArchive or UnknownContent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from ..errors import NewerArchive, UnknownContent
from . import patience
from .database import DatabaseProperties, properties
from .entry import Entry, Texts
from .grants import grantees
from .reader import SIZES, Read, Reader, damaged

MAGIC = b"PGDMP"
NEWEST = (1, 16)
# pg_dump of 8.4, the first to say to which section an entry belongs.
OLDEST = (1, 11)
WITH_ALGORITHM = (1, 15)
WITH_TABLE_ACCESS_METHOD = (1, 14)
WITH_RELKIND = (1, 16)
READERS = {(1, 16): 17, (1, 15): 16}
OLDEST_READER = 14
FORMATS = {1: "custom", 3: "tar", 5: "directory"}
COMPRESSIONS = ("none", "gzip", "lz4", "zstd")
SECTIONS = {1: "none", 2: "pre-data", 3: "data", 4: "post-data"}
MOST_ENTRIES = 1_000_000
KIND = re.compile(rb"[A-Z<][A-Za-z <>_]{0,63}")
FILE = re.compile(rb"(?:[0-9]{1,10}\.dat(?:\.gz)?|blobs(?:_[0-9]{1,10})?\.toc)?")
NUMBER = re.compile(rb"[0-9]{1,10}")
MOST_ID = 2**31 - 1

RELATIONS = frozenset({"TABLE", "FOREIGN TABLE", "VIEW", "MATERIALIZED VIEW", "SEQUENCE"})
LARGE_OBJECTS = frozenset({"BLOB", "BLOBS", "BLOB METADATA"})
# What a restore does not turn into an object, or into none that it locks.
NOT_LOCKED = frozenset(
    {"ENCODING", "STDSTRINGS", "SEARCHPATH", "DATABASE", "DATABASE PROPERTIES", "TABLE DATA", "BLOBS"}
    | {"MATERIALIZED VIEW DATA", "SEQUENCE SET", "SEQUENCE OWNED BY", "ACL", "DEFAULT ACL", "COMMENT"}
    | {"SECURITY LABEL", "STATISTICS DATA", "TABLE ATTACH", "INDEX ATTACH", "ROW SECURITY", "DEFAULT"}
    | {"CHECK CONSTRAINT", "POLICY", "RULE"}
)
# A table comes with the table and the index that keep its large values (TOAST), a type with that of its
# arrays, a constraint with its index, an extension with anything from ten to a thousand objects.
LOCKS = {"TABLE": 3, "MATERIALIZED VIEW": 3, "TYPE": 2, "DOMAIN": 2, "CONSTRAINT": 2, "EXTENSION": 40}


@dataclass(frozen=True)
class Toc:
    """`format`: "custom", "tar" (a toc.dat, of a directory too) or "directory". `version`: of the format.

    `compression`: of the data inside. `server_version` and `client_version` as PostgreSQL writes them, e.g.
    "16.4 (Debian 16.4-1)". `created`: by the clock of the machine that dumped, whose zone nobody wrote down.
    `entries` are in the order in which pg_restore works them off.
    """

    format: str
    version: tuple[int, int, int]
    compression: str
    dbname: str
    server_version: str
    client_version: str
    created: datetime | None
    entries: tuple[Entry, ...]

    @property
    def server_major(self) -> int | None:
        """17 for "17.2"; 9 for "9.6.24"."""
        return major_of(self.server_version)

    @property
    def reader_major(self) -> int:
        """The least major whose pg_restore knows this version of the format; not below 14."""
        return READERS.get(self.version[:2], OLDEST_READER)

    def owners(self) -> set[str]:
        """Roles to whom pg_restore gives objects; it fails where one is missing, unless told --no-owner."""
        return {entry.owner for entry in self.entries if entry.owned}

    def grantees(self) -> set[str]:
        """Roles that privileges, policies and user mappings name, without PUBLIC."""
        return set().union(*(grantees(entry.kind, entry.definition) for entry in self.entries))

    def extensions(self) -> tuple[str, ...]:
        """Without plpgsql, which every database has."""
        names = {entry.name for entry in self.entries if entry.kind == "EXTENSION"}
        return tuple(sorted(names - {"plpgsql"}))

    def tablespaces(self) -> tuple[str, ...]:
        """Of tables and indexes, without the default one."""
        return tuple(sorted({entry.tablespace for entry in self.entries if entry.tablespace}))

    @cached_property
    def relations(self) -> int:
        """Tables, views and sequences of every kind."""
        return sum(entry.kind in RELATIONS for entry in self.entries)

    @cached_property
    def lockable(self) -> int:
        """Locks that one transaction restoring all of it holds at its end, rather too many than too few."""
        return sum(
            _large_objects(entry) if entry.kind in LARGE_OBJECTS else LOCKS.get(entry.kind, 1)
            for entry in self.entries
            if entry.kind not in NOT_LOCKED
        )

    @cached_property
    def large_objects(self) -> bool:
        return any(entry.kind in LARGE_OBJECTS for entry in self.entries)

    def database(self) -> DatabaseProperties | None:
        """What the DATABASE entry says; None when there is none, or not as pg_dump writes one."""
        for entry in self.entries:
            if entry.kind == "DATABASE":
                return properties(entry.definition)
        return None

    @cached_property
    def by_id(self) -> dict[int, Entry]:
        return {entry.dump_id: entry for entry in self.entries}


def major_of(version: str) -> int | None:
    match = re.match(r"([0-9]{1,3})(?![0-9])", version)
    return int(match[1]) if match else None


def parse_toc(read: Read) -> Toc:
    """`read(n)` gives up to n further bytes, b"" at the end. More is read than the table of contents has."""
    reader, text = Reader(read), Texts()
    if reader.take(len(MAGIC)) != MAGIC:
        raise damaged("it does not begin as one")
    version = _version(reader)
    reader.int_size, reader.offset_size = _size(reader), _size(reader)
    archive_format = FORMATS.get(reader.byte())
    if archive_format is None:
        raise damaged("it is of no known format")
    compression = _compression(reader, version)
    created = _created(reader)
    names = reader.string(), reader.string(), reader.string()
    entries = _entries(reader, version, archive_format, text)
    # In the encoding that an entry names.
    dbname, server, client = map(text, names)
    return Toc(archive_format, version, compression, dbname, server, client, created, entries)


def _version(reader: Reader) -> tuple[int, int, int]:
    version = (reader.byte(), reader.byte(), reader.byte())
    written = f"{version[0]}.{version[1]}"
    if version[:2] > NEWEST:
        raise NewerArchive(
            f"The archive's format has version {written}; client tools up to PostgreSQL 18 read up to"
            f" {NEWEST[0]}.{NEWEST[1]}. Dump again with an older pg_dump, or use a newer pgbr."
        )
    if version[:2] < OLDEST:
        raise UnknownContent(
            f"The archive's format has version {written}, of a pg_dump before 8.4. Restore it with the tools"
            " of its time, and dump again."
        )
    return version


def _size(reader: Reader) -> int:
    size = reader.byte()
    if size not in SIZES:
        raise damaged(f"its numbers claim to have {size} bytes")
    return size


def _compression(reader: Reader, version: tuple[int, int, int]) -> str:
    if version[:2] < WITH_ALGORITHM:
        return "gzip" if reader.integer() else "none"
    algorithm = reader.byte()
    if algorithm >= len(COMPRESSIONS):
        raise damaged("its data are compressed in no known way")
    return COMPRESSIONS[algorithm]


def _created(reader: Reader) -> datetime | None:
    second, minute, hour, day, month, year, _ = (reader.integer() for _ in range(7))
    try:
        return datetime(1900 + year, 1 + month, day, hour, minute, second)
    except (ValueError, OverflowError):
        return None


def _entries(reader: Reader, version: tuple[int, int, int], archive: str, text: Texts) -> tuple[Entry, ...]:
    count = reader.integer()
    if not 0 <= count <= MOST_ENTRIES:
        raise damaged(f"it claims to have {count} entries")
    entries: dict[int, Entry] = {}
    for _ in range(count):
        patience.ask()
        entry = _entry(reader, version[:2], archive, text)
        if entry.dump_id in entries:
            raise damaged(f"it has two entries numbered {entry.dump_id}")
        entries[entry.dump_id] = entry
        if entry.kind == "ENCODING":
            text.learn(entry.definition)
    return tuple(entries.values())


def _entry(reader: Reader, version: tuple[int, int], archive: str, text: Texts) -> Entry:
    dump_id, has_data = reader.integer(), reader.integer()
    reader.string(), reader.string()  # the catalogue's and the object's oid
    name, kind = text(reader.string()), reader.string()
    section = SECTIONS.get(reader.integer())
    if not 0 < dump_id <= MOST_ID or section is None or kind is None or not KIND.fullmatch(kind):
        raise damaged(f"entry {dump_id} makes no sense")
    definition, drop, copy = text(reader.string()), reader.string(), text(reader.string())
    schema, tablespace = text.shared(reader.string()), text.shared(reader.string())
    if version >= WITH_TABLE_ACCESS_METHOD:
        reader.string()
    if version >= WITH_RELKIND:
        reader.integer()
    owner = text.shared(reader.string())
    reader.string()  # whether it is a table WITH OIDS
    depends_on = _dependencies(reader)
    data_at = reader.offset() if archive == "custom" else None
    if archive != "custom" and not FILE.fullmatch(reader.string() or b""):
        # pg_restore would open whatever is named here, ../ and all, and send it to the target.
        raise damaged(f"entry {dump_id} has its data in no file of the archive")
    return Entry(
        dump_id, text.shared(kind), schema, name, owner, section, definition, copy, depends_on,
        bool(has_data), tablespace, bool(drop), data_at,
    )  # fmt: skip


def _dependencies(reader: Reader) -> tuple[int, ...]:
    """Without repetitions, in their order."""
    found: dict[int, None] = {}
    while (written := reader.string()) is not None:
        if not NUMBER.fullmatch(written):
            raise damaged("a dependency is no number")
        found[int(written)] = None
    return tuple(found)


def _large_objects(entry: Entry) -> int:
    """How many a BLOB METADATA entry lists, one a line; a BLOB is one."""
    return entry.definition.count("\n") if entry.kind == "BLOB METADATA" else entry.kind == "BLOB"
