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


@contextmanager
def asking(conn: Session, *, lock_seconds: int = 5) -> Iterator[Session]:
    """A read-only transaction with time limits; whatever the server answers amiss becomes QueryFailed."""
    try:
        with conn.transaction():
            conn.execute(
                "SET LOCAL transaction_read_only = on; "
                f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'; "
                f"SET LOCAL lock_timeout = '{lock_seconds}s'"
            )
            yield conn
    except psycopg.Error as error:
        message = login_message(str(error))
        raise QueryFailed(
            f'Asking the server about database "{conn.info.dbname}" failed: {message}'
        ) from error
