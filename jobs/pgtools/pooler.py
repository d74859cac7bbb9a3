"""Is there a pooler between us and the server that would spread a dump's session over others' sessions?

pg_dump sets an empty search_path and more for its session. Through a pooler that gives each transaction any
server session (PgBouncer with pool_mode transaction or statement, and others) these settings stay behind in
the sessions of the application, and the dump's own statements may run without them.
"""

from __future__ import annotations

import secrets
import select
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import pq

from .errors import ConnectionFailed, PoolerDetected

Session = psycopg.Connection[Any]
# The order in which two open sessions ask. A pool that hands out what was returned last lets the second one
# meet the first one's server session at once; one that hands out the oldest changes it at "0 0" and "1 1".
TURNS = (0, 1, 0, 0, 1, 1, 0, 1, 1, 0)
ANSWER_SECONDS = 5
# The search_path is whatever the database's owner has made it, so nothing here may be looked for in it, not
# even the name of a type. A time comes as text: psycopg cannot read one in every DateStyle.
ASK = (
    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_postmaster_start_time()::pg_catalog.text, "
    "pg_catalog.current_setting('pgbr.probe', true)"
)


def refuse_pooler(conn: Session, open_another: Callable[[], Session]) -> None:
    """Raises PoolerDetected when sessions share their server sessions; silent for direct connections.

    The rule: two sessions of ours are open at the same time, each having SET a parameter (as pg_dump will,
    which makes proxies that pin a session on SET do so). They take turns to ask for the server process that
    answers and for their parameter. A server gives every session a process and parameters of its own for as
    long as it lasts, and so does a pooler in session mode; so if the two ever meet the same process, or one
    meets two processes or another's parameter, sessions are being shared. A direct connection can never show
    this. That the process differs from the one named at login, as behind any proxy, proves nothing and is not
    used. Without a second session (no free connection, a limit on the role, a pool that lets it wait) only
    `conn` is watched.

    The parameter is one that nobody reads (pgbr.probe), and is reset.
    """
    # A pool in session mode gives out a server session at the first query; the other must not get the last.
    conn.execute("SELECT 1")
    try:
        other = open_another()
    except ConnectionFailed:
        _watch((conn,))
        return
    try:
        _watch((conn, other) if _answers(other) else (conn,))
    finally:
        other.close()


def _answers(session: Session) -> bool:
    """A pool in session mode with no server session left accepts the login and then lets the client wait."""
    pgconn = session.pgconn
    deadline = time.monotonic() + ANSWER_SECONDS
    with suppress(psycopg.OperationalError):
        pgconn.send_query(b"SELECT 1")
        pgconn.flush()
        while _readable(session, deadline):
            pgconn.consume_input()
            while not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None:
                    return True
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    return False
    return False


def _readable(session: Session, deadline: float) -> bool:
    left = max(deadline - time.monotonic(), 0)
    return bool(select.select([session.fileno()], [], [], left)[0])


def _watch(sessions: tuple[Session, ...]) -> None:
    marks = [secrets.token_hex(8) for _ in sessions]
    for session, mark in zip(sessions, marks, strict=True):
        session.execute(f"SET pgbr.probe = '{mark}'")
    seen: list[set[tuple[int, Any]]] = [set() for _ in sessions]
    shared = False
    for turn in TURNS:
        index = turn % len(sessions)
        pid, started, mark = sessions[index].execute(ASK).fetchone() or (0, None, "")
        seen[index].add((pid, started))
        shared = shared or mark != marks[index] or len(seen[index]) > 1
    for session in sessions:
        session.execute("RESET pgbr.probe")
    if shared or (len(seen) > 1 and seen[0] & seen[1]):
        raise PoolerDetected(
            "This connection goes through a pooler that gives each transaction another server session "
            "(such as PgBouncer with pool_mode = transaction). A dump through it would leave its settings, "
            "an empty search_path among them, in your application's sessions. Register the server's own "
            "address, or a pool with pool_mode = session."
        )
