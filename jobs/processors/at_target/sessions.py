"""Sessions on the target's server: which one to give orders through, and ending those in the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from jobs.pgtools import pooler
from jobs.pgtools.asking import trust_no_names
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, QueryFailed

Session = psycopg.Connection[Any]
Open = Callable[[], Session]
Watch = Callable[[Session], object]

# Most roles do not see what others' sessions are (backend_type), but whose they are. A worker that slept
# through the loss of its lock must send nobody away: they are a later one's by then.
OTHERS = """
SELECT a.pid, COALESCE(a.application_name, ''), COALESCE(r.rolname, 'unknown'),
    (NOT r.rolsuper OR (SELECT m.rolsuper FROM pg_catalog.pg_roles m WHERE m.rolname = current_user))
    AND (pg_catalog.pg_has_role(a.usesysid, 'USAGE')
        OR pg_catalog.pg_has_role('pg_signal_backend', 'USAGE')) AS may_end
FROM pg_catalog.pg_stat_activity a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.usesysid
WHERE a.datname = ANY(%s) AND a.usesysid IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid()
  AND EXISTS (SELECT FROM pg_catalog.pg_stat_activity WHERE pid = %s)
"""
PREPARED = "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE database = ANY(%s)"
OURS = """
SELECT pid FROM pg_catalog.pg_stat_activity
WHERE application_name = %s AND usename = current_user AND pid <> pg_catalog.pg_backend_pid()
"""
END = "SELECT pg_catalog.pg_terminate_backend(%s)"
STEADY = """
SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout',
    'idle_in_transaction_session_timeout')
"""
GONE_SECONDS = 15.0
CANCEL_SECONDS = 10.0
AGAIN_SECONDS = 0.05


def unwatched(_: Session) -> None:
    """Nobody wants to end it before it is known."""


def maintenance(
    conninfo: Conninfo, target: str, folder: Path, application_name: str, watch: Watch = unwatched
) -> Session | None:
    """A session outside the target database, from which it can be created, renamed and dropped; in "postgres"
    wherever the login may enter that, so that all who want the same target meet there. None: there is none.

    `watch` is given each session before it is asked anything. Raises `ConnectionFailed` when the server
    cannot be reached at all, and `PoolerDetected`.
    """
    for name in dict.fromkeys(["postgres", conninfo.dbname, "template1"]):
        if name == target:
            continue
        with suppress(ConnectionFailed):
            return direct(conninfo.replace_database(name), folder, application_name, watch)
    return None


def direct(conninfo: Conninfo, folder: Path, application_name: str, watch: Watch = unwatched) -> Session:
    """Raises `ConnectionFailed` and `PoolerDetected`."""

    def connect() -> Session:
        opened = conninfo.connect(folder, application_name)
        watch(opened)
        return opened

    session = connect()
    try:
        pooler.refuse_pooler(session, connect)
        make_ours(session)
    except BaseException:
        session.close()
        raise
    return session


def steady(conninfo: Conninfo, folder: Path, application_name: str, watch: Watch = unwatched) -> Session:
    """Another session on a server that `direct` has seen."""
    session = conninfo.connect(folder, application_name)
    watch(session)
    make_ours(session)
    return session


def make_ours(session: Session) -> None:
    """No default of the role or the database ends it for being slow or idle."""
    trust_no_names(session)
    session.execute(STEADY)


def cancel(session: Session) -> None:
    """End what `session` is waiting for; from another thread. Not psycopg's `cancel`: that holds all threads
    of the process up for as long as the server likes."""
    with suppress(psycopg.Error):
        session.cancel_safe(timeout=CANCEL_SECONDS)


def end_own(session: Session, application_name: str) -> int:
    """End what an earlier run of this job left on the server, and wait until it is gone: only then are its
    locks free and its writes over. Raises `QueryFailed` if it does not go."""
    deadline = time.monotonic() + GONE_SECONDS
    ended: set[int] = set()
    while pids := {pid for (pid,) in session.execute(OURS, [application_name])}:
        for pid in pids:
            session.execute(END, [pid])
        ended |= pids
        if time.monotonic() > deadline:
            raise QueryFailed(
                f"{len(pids)} sessions of an earlier run of this job are still on the server and do not end. "
                "End them there (pg_terminate_backend), then run it again."
            )
        time.sleep(AGAIN_SECONDS)
    return len(ended)


@contextmanager
def emptied(databases: Sequence[str], holder: Session, open_session: Open) -> Iterator[list[str]]:
    """While inside, whoever connects to these databases is sent away again and again, so that they can be
    renamed or dropped; as long as the session `holder` lives. Yields a list of who cannot be, kept up to
    date: "application as user". While there is somebody, the others are left in peace.
    """
    stubborn: list[str] = []
    pid = holder.info.backend_pid
    done = threading.Event()
    session = open_session()

    def sweep() -> None:
        while not done.is_set():
            try:
                stubborn[:] = _end_others(session, databases, pid)
            except psycopg.Error:
                return
            done.wait(AGAIN_SECONDS)

    thread = threading.Thread(target=sweep, daemon=True)
    try:
        stubborn[:] = _end_others(session, databases, pid)
        thread.start()
        yield stubborn
    finally:
        done.set()
        if thread.ident is not None:
            thread.join()
        session.close()


def _end_others(session: Session, databases: Sequence[str], holder: int) -> list[str]:
    """Nobody is ended as long as there is somebody who cannot be: it would be for nothing."""
    found = session.execute(OTHERS, [list(databases), holder]).fetchall()
    stubborn = [_label(user, application) for _, application, user, may_end in found if not may_end]
    prepared = session.execute(PREPARED, [list(databases)]).fetchall()
    stubborn += [f'the prepared transaction "{gid}"' for (gid,) in prepared]
    for pid, application, user, _ in [] if stubborn else found:
        try:
            session.execute(END, [pid])
        except psycopg.errors.InsufficientPrivilege:
            stubborn.append(_label(user, application))
    return stubborn


def _label(user: str, application: str) -> str:
    return f"{application or 'a client'} as {user}"
