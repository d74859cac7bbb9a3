"""The beginning of a plain SQL dump: whether it is SQL at all, and which pg_dump wrote it of what server."""

from __future__ import annotations

import re

# Comments and white space before the first statement; possessive: nothing is looked at twice.
BLANK = re.compile(rb"(?:\s++|--[^\n]*+(?:\n|\Z)|/\*(?:[^*]++|\*(?!/))*+\*/)++")
FIRST_WORDS = frozenset(
    b"""abort alter analyze begin call comment copy create delete do drop explain grant import insert lock
    merge reassign refresh reindex release reset revoke rollback savepoint security select set show start
    table truncate update vacuum values with""".split()
)
WORD = re.compile(rb"[A-Za-z]+")
SERVER = re.compile(rb"^-- Dumped from database version ([0-9][^\r\n]{0,200})", re.M)
CLIENT = re.compile(rb"^-- Dumped by pg_dump version ([0-9][^\r\n]{0,200})", re.M)


def looks_like_sql(text: bytes) -> bool:
    """Begins with a statement of SQL or a command of psql, after any comments; or is all comments."""
    blank = BLANK.match(text)
    rest = text[blank.end() :] if blank else text
    word = WORD.match(rest)
    if word:
        return word[0].lower() in FIRST_WORDS
    return rest.startswith((b"\\", b"(", b";")) or (not rest and bool(blank))


def versions(head: bytes) -> tuple[str, str]:
    """pg_dump's version and the server's, e.g. ("17.6", "16.4 (Debian 16.4-1)"); "" where it does not say."""
    client, server = CLIENT.search(head), SERVER.search(head)
    return _text(client), _text(server)


def _text(match: re.Match[bytes] | None) -> str:
    return match[1].decode("utf-8", "backslashreplace").strip() if match else ""
