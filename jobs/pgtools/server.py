"""What a user's server says about itself and the database: for the connection test and the manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg.rows import dict_row

from .asking import Session, asking
from .errors import QueryFailed

# Through to_jsonb, columns that came with a major (datlocprovider 15, datlocale 17) can be asked of any.
FACTS = """
    SELECT pg_catalog.current_setting('server_version_num')::int AS version_num,
        pg_catalog.current_setting('server_version') AS version,
        d.datname AS dbname, pg_catalog.pg_is_in_recovery() AS in_recovery,
        pg_catalog.pg_encoding_to_char(d.encoding) AS encoding, d.datcollate AS collate, d.datctype AS ctype,
        pg_catalog.to_jsonb(d) ->> 'datlocprovider' AS provider,
        COALESCE(pg_catalog.to_jsonb(d) ->> 'datlocale', pg_catalog.to_jsonb(d) ->> 'daticulocale') AS locale,
        pg_catalog.pg_get_userbyid(d.datdba) AS owner,
        (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) AS superuser,
        pg_catalog.has_table_privilege('pg_catalog.pg_authid', 'SELECT') AS reads_role_passwords,
        (SELECT s.setconfig FROM pg_catalog.pg_db_role_setting s
            WHERE s.setdatabase = d.oid AND s.setrole = 0) AS settings,
        (SELECT pg_catalog.json_object_agg(e.extname, e.extversion ORDER BY e.extname)
            FROM pg_catalog.pg_extension e) AS extensions
    FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
"""
SIZE = "SELECT pg_catalog.pg_database_size(pg_catalog.current_database()) AS size"
PROVIDERS = {"c": "libc", "i": "icu", "b": "builtin", None: "libc"}


@dataclass(frozen=True)
class ServerFacts:
    """A server and one of its databases as the login sees them.

    `version_num` is as in server_version_num (170011), `version` as the server writes it ("17.11").
    `size_bytes` is None when the server did not tell within the time limit. `locale` is the ICU or builtin
    locale, "" with libc. `database_settings` is what ALTER DATABASE … SET keeps, `extensions` maps name to
    version.
    """

    version_num: int
    version: str
    dbname: str
    size_bytes: int | None
    in_recovery: bool
    encoding: str
    collate: str
    ctype: str
    locale_provider: str
    locale: str
    owner: str
    superuser: bool
    reads_role_passwords: bool
    database_settings: dict[str, str]
    extensions: dict[str, str]

    @property
    def major(self) -> int:
        return self.version_num // 10000


def inspect(conn: Session) -> ServerFacts:
    """Raises QueryFailed. Call `pooler.refuse_pooler` before, so that nothing is asked through one."""
    with asking(conn), conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(FACTS).fetchone()
    if row is None:
        raise QueryFailed(f'The server does not list the database "{conn.info.dbname}".')
    return _facts(row, _size(conn))


def _facts(row: dict[str, Any], size: int | None) -> ServerFacts:
    settings = dict(entry.split("=", 1) for entry in row.pop("settings") or ())
    return ServerFacts(
        size_bytes=size,
        locale_provider=PROVIDERS.get(row.pop("provider"), "unknown"),
        locale=row.pop("locale") or "",
        database_settings=settings,
        extensions=row.pop("extensions") or {},
        **row,
    )


def _size(conn: Session) -> int | None:
    try:
        with asking(conn):
            row = conn.execute(SIZE).fetchone()
    except QueryFailed:
        return None
    return int(row[0]) if row else None
