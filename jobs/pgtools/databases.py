"""The databases of a server, as a login sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .asking import Session, asking
from .errors import QueryFailed

MOST = 5000
LONGEST_NAME = 255  # bytes; PostgreSQL's own end at 63
SIZES_SECONDS = 20
# A name is what bytes it was created with, whatever the encoding of the database that is asked in; told as
# text it would be changed, or fail for all. An invalid one (datconnlimit -2) broke off while it was dropped.
ALL = rf"""SELECT pg_catalog.replace(d.datname::pg_catalog.text, E'\\', E'\\\\')::pg_catalog.bytea, d.oid,
    d.datistemplate OR NOT d.datallowconn OR d.datconnlimit = -2,
    pg_catalog.has_database_privilege(d.oid, 'CONNECT')
FROM pg_catalog.pg_database d
ORDER BY d.datname
LIMIT {MOST + 1}
"""  # noqa: S608  constants
SIZES = """
SELECT d.oid, pg_catalog.pg_database_size(d.oid)
FROM pg_catalog.pg_database d
WHERE d.oid = ANY(%s)
  AND (pg_catalog.has_database_privilege(d.oid, 'CONNECT')
       OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'))
"""


@dataclass(frozen=True)
class Listed:
    """`readable`: the name is UTF-8, so that it can be written into a URL; else it is shown with escapes.
    `closed`: a template, or nobody may connect. `size` in bytes, None where it was not told."""

    name: str
    readable: bool
    closed: bool
    may_connect: bool
    size: int | None = None


def databases(conn: Session) -> list[Listed]:
    """All of them, in the order of their names. Raises QueryFailed."""
    try:
        with asking(conn):
            found = conn.execute(ALL).fetchall()
        if len(found) > MOST:
            raise QueryFailed(f"The server has more than {MOST} databases: register those you want by hand.")
        sizes = _sizes(conn, [oid for _, oid, closed, _ in found if not closed])
        return [_listed(raw, closed, open_, sizes.get(oid)) for raw, oid, closed, open_ in found]
    except (TypeError, ValueError):
        raise QueryFailed("The server answers as no PostgreSQL does. Check the address.") from None


def _sizes(conn: Session, oids: Sequence[Any]) -> dict[Any, Any]:
    """Each file is looked at; where that takes long, or a database goes meanwhile, there are none."""
    try:
        with asking(conn):
            conn.execute(f"SET LOCAL statement_timeout = '{SIZES_SECONDS}s'")
            return dict(conn.execute(SIZES, [list(oids)]).fetchall())
    except QueryFailed:
        return {}


def _listed(raw: Any, closed: Any, may_connect: Any, size: Any) -> Listed:
    if not isinstance(raw, bytes) or not 0 < len(raw) <= LONGEST_NAME or 0 in raw:
        raise TypeError("no name")
    if size is not None and not isinstance(size, int):
        raise TypeError("no size")
    try:
        name, readable = raw.decode(), True
    except UnicodeDecodeError:
        name, readable = raw.decode(errors="backslashreplace"), False
    return Listed(name, readable, bool(closed), bool(may_connect), size)
