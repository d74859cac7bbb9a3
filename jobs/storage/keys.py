"""Names of stored objects: readable, sortable by time, safe in every storage and shell."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from uuid import UUID

NAME_MAX = 80  # characters of the database's name; the whole last part stays below 255 bytes
_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D",
     "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ł": "l", "Ł": "L"}
)  # fmt: skip


def object_key(
    prefix: str, database: str, started_at: datetime, job_id: UUID | str, claim_id: UUID | str, extension: str
) -> str:
    """`[prefix/]<database>/<UTC start>_<database>_<8 of job id>-<4 of claim>.<extension>`.

    The claim makes it the key of one run of one job: a worker that lost its claim can neither
    overwrite nor delete its successor's object.
    """
    name = safe_name(database)
    job, claim = str(job_id).replace("-", ""), str(claim_id).replace("-", "")
    return "/".join(
        [*_folders(prefix), name, f"{_stamp(started_at)}_{name}_{job[:8]}-{claim[:4]}.{extension}"]
    )


def moved_key(key: str, prefix: str) -> str:
    """The key of another copy of the object `key`, in a storage whose prefix is `prefix`."""
    return "/".join([*_folders(prefix), *key.split("/")[-2:]])


def upload_key(prefix: str, name: str, started_at: datetime, upload_id: UUID) -> str:
    """`[prefix/]uploads/<UTC start>_<name>_<id>.upload`.

    The extension is ours: a file that calls itself a manifest must not be found as one.
    """
    safe = safe_name(name, fallback="file")
    return "/".join([*_folders(prefix), "uploads", f"{_stamp(started_at)}_{safe}_{upload_id.hex}.upload"])


def folder_of(prefix: str) -> str:
    """What the keys of a storage with this prefix begin with."""
    return "".join(part + "/" for part in _folders(prefix))


def manifest_key(key: str) -> str:
    return key + ".json"


def globals_key(key: str) -> str:
    return key + ".globals.sql"


def safe_name(name: str, *, fallback: str = "database") -> str:
    """`name` in A-Za-z0-9._-, at most NAME_MAX characters, neither end a dot or a dash.

    Accents are dropped, other characters become a dash; `fallback` when nothing is left.
    """
    decomposed = unicodedata.normalize("NFKD", name.translate(_LETTERS))
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    safe = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._-]", "-", plain)).strip(".-")
    return safe[:NAME_MAX].strip(".-") or fallback


def _folders(prefix: str) -> list[str]:
    return [part for part in (safe_name(part, fallback="") for part in prefix.split("/")) if part]


def _stamp(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ValueError("started_at must be aware")
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
