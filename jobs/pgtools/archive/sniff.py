"""What a file is, from its first bytes: never from its name."""

from __future__ import annotations

import re

from ..errors import DamagedArchive, UnknownContent
from . import plain
from .tar import BLOCK, header_of
from .toc import MAGIC

ANYTHING_ELSE = (
    "pgbr restores what pg_dump writes: custom, tar and directory (as a tar) archives, and plain SQL."
)

# First bytes of files that people mix up with dumps, and what to do about each.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip file. Unpack it first."),
    (b"PK\x05\x06", "an empty zip file."),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file. Unpack it first."),
    (b"Rar!\x1a\x07", "a rar file. Unpack it first."),
    (b"\xfd7zXZ\x00", "compressed with xz. Decompress it first, or use gzip or zstd."),
    (b"BZh", "compressed with bzip2. Decompress it first, or use gzip or zstd."),
    (b"\x04\x22\x4d\x18", "compressed with lz4. Decompress it first, or use gzip or zstd."),
    (b"LZIP", "compressed with lzip. Decompress it first, or use gzip or zstd."),
    (b"\x1f\x9d", "compressed with compress. Decompress it first, or use gzip or zstd."),
    (b"\x1f\x8b\x08", "compressed twice. Decompress it once with gzip first."),
    (b"\x28\xb5\x2f\xfd", "compressed twice. Decompress it once with zstd first."),
    (b"Salted__", "encrypted with openssl. Decrypt it first."),
    (b"age-encryption.org/", "encrypted with age. Decrypt it first."),
    (b"-----BEGIN PGP", "encrypted with PGP. Decrypt it first."),
    (b"SQLite format 3\x00", "an SQLite database."),
    (b"MDMP", "a memory dump."),
    (b"\x89PNG\r\n\x1a\n", "a PNG image."),
    (b"\xff\xd8\xff", "a JPEG image."),
    (b"GIF8", "a GIF image."),
    (b"%PDF-", "a PDF document."),
    (b"\x7fELF", "a program."),
    (b"MZ", "a program for Windows."),
    (b"TAPE\x00", "a backup of Microsoft SQL Server."),
    (b"\xff\xfe", "text in UTF-16, as PowerShell's > writes it. Let pg_dump write it with --file instead."),
    (b"\xfe\xff", "text in UTF-16. Let pg_dump write it with --file instead."),
)

# The same for texts; looked for in the first lines, without regard to upper and lower case.
TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"-- (mysql|mariadb) dump|/\*m?!", re.I), "a dump of MySQL or MariaDB."),
    (re.compile(rb"<!doctype html|<html", re.I), "a web page, perhaps of a download that needed a login."),
    (re.compile(rb"<\?xml|<error>", re.I), "an XML document, perhaps the error message of a store."),
    (re.compile(rb"[{\[]"), "JSON."),
    (re.compile(rb"version https://git-lfs"), "a pointer of Git LFS, not the file itself."),
)
CLUSTER = b"-- PostgreSQL database cluster dump"
BOM = b"\xef\xbb\xbf"


def sniff(head: bytes) -> str:
    """ "custom", "tar" or "plain", from the first 64 KiB of the decompressed content, or all of it.

    "tar" is a tar of any kind. Raises UnknownContent, which says what it looks like instead.
    """
    if not head:
        raise UnknownContent("The file is empty: whatever wrote it failed before its first byte.")
    if head.startswith(MAGIC):
        return "custom"
    if _is_tar(head):
        return "tar"
    for signature, words in SIGNATURES:
        if head.startswith(signature):
            raise _unknown(words)
    return _text(head)


def _text(head: bytes) -> str:
    if b"\0" in head:
        raise _unknown("binary data of no kind that pgbr knows.")
    start = head.removeprefix(BOM).lstrip()
    if CLUSTER in start[:200]:
        raise UnknownContent(
            "This is a dump of a whole server by pg_dumpall, with roles and several databases. Run it with"
            " psql on an empty server, or dump the one database with pg_dump."
        )
    for pattern, words in TEXTS:
        if pattern.match(start):
            raise _unknown(words)
    if not plain.looks_like_sql(start):
        raise _unknown(
            "text, but it does not begin as SQL does." if start else "blank: nothing but white space."
        )
    return "plain"


def _is_tar(head: bytes) -> bool:
    try:
        header_of(head[:BLOCK])
    except DamagedArchive:
        return False
    return True


def _unknown(words: str) -> UnknownContent:
    return UnknownContent(f"This is no dump of PostgreSQL; it looks like {words} {ANYTHING_ELSE}")
