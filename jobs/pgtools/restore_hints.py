"""From what a server or pg_restore says to what to do about it, in a restore."""

from __future__ import annotations

import re

from .hints import LOOKED_AT, hint

WITHOUT_OWNERS = (
    "Restore without owners and privileges (no_owner, no_privileges), or connect as a superuser or a member "
    "of the roles."
)
HINTS = (
    (
        r"could not read from input file|could not (?:un|de)compress|input file is too short"
        r"|input file does not appear|found unexpected|corrupt",
        "The dump is damaged or cut off: restore another copy or backup, or make and upload it anew.",
    ),
    (r"is cut off", "Restore another copy or backup, or make and upload it anew."),
    (
        r'(?<!database) "[^"]*"[^"]* already exists|multiple primary keys',
        "What is in the target is in the way: choose data_only for rows alone, clean with if_exists to drop "
        "what is there first, or restore as “replace”.",
    ),
    (
        r"other objects depend on it",
        "Nothing that depends on it is dropped along: choose that too (views are chosen like tables), or "
        "restore as “replace”.",
    ),
    (
        r"duplicate key value|violates unique constraint",
        "Rows of the dump are in the target already: empty the tables first, or restore as “replace”.",
    ),
    (
        r"violates foreign key constraint|violates check constraint",
        "Rows refer to what is not there (yet): restore the tables one by one, those that are referred to "
        "first; disable_triggers lets a superuser load them all the same.",
    ),
    (
        r"must be owner of|must be member of role|must be able to SET ROLE|permission denied to set role",
        WITHOUT_OWNERS,
    ),
    (r'role "[^"]*" does not exist', "Create the role first, or restore without owners and privileges."),
    (
        r"permission denied to create extension|could not open extension control"
        r"|extension .* is not available",
        "Install the extension as a superuser first and restore into that database as “empty”, or leave out "
        "what needs it.",
    ),
    (
        r"permission denied for (?:schema|database)",
        "Let the owner GRANT CREATE there, or restore into a database that belongs to the owner of what "
        "comes.",
    ),
    (r"permission denied", WITHOUT_OWNERS),
    (
        r"out of shared memory",
        "A single transaction ran out of locks: turn single_transaction off, or raise "
        "max_locks_per_transaction at the server.",
    ),
    (
        r"No space left on device|could not extend file|disk full|DiskFull",
        "The disk of the database server is full: free space there, then run it again.",
    ),
    (
        r"has no equivalent in encoding|invalid byte sequence for encoding",
        "Restore as “new” or “replace”, which create the database with the encoding of the source.",
    ),
    (
        r"terminating connection|server closed the connection|connection to server was lost",
        "The server or somebody at it ended the session: see its log, then run it again.",
    ),
    (
        r"(?:relation|schema|type|function|operator|column) .*does not exist",
        "The dump counts on what is not in the target: restore the definitions too, or choose more.",
    ),
)


def advised(text: str) -> str:
    """`text`, an error, with what to do about it where that is known and not said yet."""
    if (said := hint(text)) and said in text:
        return text
    looked_at = text[:LOOKED_AT]
    advice = next((advice for pattern, advice in HINTS if re.search(pattern, looked_at)), "")
    return f"{text.rstrip('.')}. {advice}" if advice and advice not in text else text
