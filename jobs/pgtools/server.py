"""What a user's server says about itself and the database: for the connection test and the manifest."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from psycopg.rows import dict_row

from .asking import Session, asking
from .errors import QueryFailed

# Through to_jsonb, columns that came with a major (datlocprovider 15, datlocale 17) can be asked of any.
FACTS = """
    SELECT pg_catalog.current_setting('server_version_num')::int AS version_num,
        pg_catalog.current_setting('server_version') AS version,
        d.datname AS dbname, d.oid, pg_catalog.pg_is_in_recovery() AS in_recovery,
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
IDENTIFIER = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
SIZE = "SELECT pg_catalog.pg_database_size(pg_catalog.current_database()) AS size"
MOST_CHARACTERS = 2_000_000
PROVIDERS = {"c": "libc", "i": "icu", "b": "builtin", None: "libc"}


@dataclass(frozen=True)
class ServerFacts:
    """A server and one of its databases as the login sees them.

    `version_num` is as in server_version_num (170011), `version` as the server writes it ("17.11").
    `size_bytes` is None when the server did not tell within the time limit. `locale` is the ICU or builtin
    locale, "" with libc. `database_settings` is what ALTER DATABASE … SET keeps, `extensions` maps name to
    version. `system_identifier` is made by initdb and shared by its standbys; "" when the server does not
    tell. With the `oid` of the database it says which database this is, however it is reached.
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
    system_identifier: str
    oid: int

    @property
    def major(self) -> int:
        return self.version_num // 10000


def inspect(conn: Session) -> ServerFacts:
    """Raises QueryFailed. Call `pooler.refuse_pooler` before, so that nothing is asked through one."""
    try:
        with asking(conn), conn.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(FACTS).fetchone()
        if row is None:
            raise QueryFailed(f'The server does not list the database "{conn.info.dbname}".')
        facts = _facts(row, _size(conn), system_identifier(conn))
        check_keepable(asdict(facts))
    except (TypeError, ValueError, LookupError, AttributeError):
        raise QueryFailed("The server answers as no PostgreSQL does. Check the address.") from None
    return facts


def check_keepable(values: dict[str, Any]) -> None:
    """Raises QueryFailed for what a JSON column does not take, or should not: anybody can write a server."""
    try:
        text = json.dumps(values, ensure_ascii=False, allow_nan=False)
        fits = len(text.encode()) <= MOST_CHARACTERS and "\\u0000" not in text
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise QueryFailed("What the server says of itself is too long, or no text. Check the address.")


def system_identifier(conn: Session) -> str:
    """Of the server; "" when it does not tell, which managed ones may not. Raises nothing."""
    try:
        with asking(conn):
            row = conn.execute(IDENTIFIER).fetchone()
    except QueryFailed:
        return ""
    return str(row[0]) if row else ""


def _facts(row: dict[str, Any], size: int | None, identifier: str) -> ServerFacts:
    settings = dict(entry.split("=", 1) for entry in row.pop("settings") or ())
    for name, kind in (("version_num", int), ("version", str), ("oid", int)):
        if not isinstance(row[name], kind):
            raise TypeError(name)
    return ServerFacts(
        size_bytes=size,
        system_identifier=identifier,
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
