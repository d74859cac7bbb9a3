"""Our own sessions on a server, told by their application_name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import psycopg

END = """
SELECT count(pg_catalog.pg_terminate_backend(pid))
FROM pg_catalog.pg_stat_activity
WHERE application_name = %s AND usename = current_user
  AND pid <> pg_catalog.pg_backend_pid() AND pid <> ALL (%s)
"""


def end_sessions(conn: psycopg.Connection[Any], application_name: str, spare: Collection[int] = ()) -> int:
    """End the login role's other sessions of that name: what a killed worker's tools left running there.

    `spare`: pids of those that the caller itself has opened.
    """
    row = conn.execute(END, [application_name, list(spare)]).fetchone()
    return int(row[0]) if row else 0
