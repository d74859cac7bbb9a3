"""How this package asks a user's server things: briefly, in one transaction that leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from .errors import QueryFailed
from .hints import login_message

Session = psycopg.Connection[Any]
STATEMENT_SECONDS = 60
# pgbr.shown: the schemas of the session's search_path in their order, which patterns of tables go by.
BEGIN = f"""
    SET LOCAL search_path TO DEFAULT;
    SELECT pg_catalog.set_config(
        'pgbr.shown', (pg_catalog.current_schemas(true))::pg_catalog.text, true);
    SET LOCAL search_path = '';
    SET LOCAL transaction_read_only = on;
    SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s';
"""
NO_SEARCH_PATH = "SELECT pg_catalog.set_config('search_path', '', false)"


def trust_no_names(conn: Session) -> None:
    """From here on operators and types mean PostgreSQL's own, whatever the database's owner has made of the
    same names and put first in its search_path. Not through a pooler, where it would be left to others."""
    conn.execute(NO_SEARCH_PATH)


@contextmanager
def asking(conn: Session, *, lock_seconds: int = 5) -> Iterator[Session]:
    """A read-only transaction with time limits, in which names mean PostgreSQL's own; whatever the server
    answers amiss becomes QueryFailed."""
    try:
        with conn.transaction():
            conn.execute(f"{BEGIN} SET LOCAL lock_timeout = '{lock_seconds}s'")
            yield conn
    except psycopg.Error as error:
        message = login_message(str(error))
        raise QueryFailed(
            f'Asking the server about database "{conn.info.dbname}" failed: {message}'
        ) from error
