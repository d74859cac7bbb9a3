"""The right to write into a target: a session advisory lock, held for as long as a job writes.

Two locks, because advisory locks are local to a database: one by the target's name in the database where
orders are given (normally "postgres"), which stands for targets that do not exist yet or change their names;
and one inside the target, for logins that may enter nothing else.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from jobs.backoff import pause_while_waiting
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, QueryFailed
from jobs.pgtools.hints import login_message
from jobs.pgtools.mask import mask
from jobs.processors.at_target import sessions, strays
from jobs.processors.at_target.lines import Lines
from jobs.processors.at_target.sessions import Session
from jobs.processors.base import HandBack, JobFailed
from jobs.processors.control import Control, Stopped

INSIDE_KEY = 0x70676272_74617267  # "pgbrtarg"
TRY_LOCK = "SELECT pg_catalog.pg_try_advisory_lock(%s)"
LOCKED_BY = """
SELECT COALESCE(a.application_name, ''), a.pid,
    a.state = 'idle' AND a.state_change < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => %s)
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
AND (l.classid::bigint << 32 | l.objid::bigint) = %s
AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
"""
EXISTS = "SELECT oid::bigint FROM pg_catalog.pg_database WHERE datname = %s"
PROBE_SECONDS = 5.0
# A holder that lives asks something every PROBE_SECONDS. One whose machine vanished would be waited for until
# the server's system gives its connection up, which takes hours.
DESERTED_SECONDS = 120.0


class Hold:
    """A held target. `session` gives orders from outside of it and is None where the login may enter no other
    database; `inside` is in it. Whoever lost the lock has lost these sessions, so a zombie's orders fail."""

    def __init__(self, conninfo: Conninfo, name: str, folder: Path, job_id: UUID) -> None:
        self.conninfo = conninfo
        self.name = name
        self.folder = folder
        self.application_name = f"pgbr/{job_id}"
        self.session: Session | None = None
        self.inside: Session | None = None
        self.lost = False
        self.lines = Lines()
        self._loss = ""
        self._killers: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._done = threading.Event()

    @property
    def orders(self) -> Session:
        """The session outside of the target. Raises `JobFailed` where there is none."""
        if self.session is None:
            raise JobFailed(
                f'The login "{self.conninfo.user}" may enter no database of {self.conninfo.host_label} but '
                f'"{self.name}" itself, so none can be created or renamed. Let it CONNECT to "postgres", or '
                "restore into the existing database."
            )
        return self.session

    @property
    def pids(self) -> list[int]:
        """At the server, of the sessions that hold the lock."""
        with self._lock:
            held = [self.session, self.inside]
            return [session.info.backend_pid for session in held if session is not None]

    def oid(self, name: str) -> int | None:
        """Of a database of that name, None: there is none."""
        return oid_of(self.session or self.inside_or_fail(), name)

    def has(self, name: str) -> bool:
        """A database of that name."""
        return self.oid(name) is not None

    def inside_or_fail(self) -> Session:
        if self.inside is None:
            raise JobFailed(f'The database "{self.name}" does not exist on {self.conninfo.host_label}.')
        return self.inside

    def open(self, name: str | None = None) -> Session:
        """Another session, to the named database or where orders are given."""
        dbname = name if name is not None else self.orders.info.dbname
        conninfo = self.conninfo.replace_database(dbname)
        return sessions.steady(conninfo, self.folder, self.application_name, self.lines.add)

    def leave_inside(self) -> None:
        """The target is about to be renamed, for which nobody may be in it."""
        with self._lock:
            if self.inside is not None:
                self.inside.close()
                self.inside = None

    @contextmanager
    def killing(self, kill: Callable[[], None]) -> Iterator[None]:
        """While inside, losing the lock calls `kill`."""
        with self._lock:
            self._killers.append(kill)
            late = self.lost
        if late:
            kill()
        try:
            yield
        finally:
            with self._lock:
                self._killers.remove(kill)

    def check(self) -> None:
        """Raises `JobFailed` once the lock is lost."""
        if self.lost:
            raise JobFailed(self._loss)

    def watch(self) -> None:
        while not self._done.wait(PROBE_SECONDS):
            with self._lock:
                held = [session for session in (self.session, self.inside) if session is not None]
            if any(_is_broken(session) and self._holds(session) for session in held):
                self._lose()
                return

    def _lose(self) -> None:
        where = f'"{self.name}" at {self.conninfo.host_label}'
        self._loss = (
            f"The database {where} was dropped or renamed meanwhile, so this job stopped."
            if self._is_gone()
            else f"The session that held the lock on {where} broke, so this job stopped writing. Was the "
            "server restarted? Look at the target, then run it again."
        )
        with self._lock:
            self.lost = True
            killers = list(self._killers)
        for kill in killers:
            kill()

    def _is_gone(self) -> bool:
        """Known for sure, and it was there before."""
        try:
            return (
                self.inside is not None
                and self.session is not None
                and oid_of(self.session, self.name) is None
            )
        except psycopg.Error:
            return False

    def _holds(self, session: Session) -> bool:
        """Not left or closed on purpose meanwhile."""
        with self._lock:
            return session in (self.session, self.inside) and not self._done.is_set()

    def close(self) -> None:
        self._done.set()
        self.lines.close()
        for session in (self.session, self.inside):
            if session is not None:
                session.close()


@contextmanager
def held(
    conninfo: Conninfo, name: str, folder: Path, job_id: UUID, since: datetime, control: Control
) -> Iterator[Hold]:
    """The lock on the database called `name` of that server, whether it exists or not. `since`: when the job
    was ordered.

    Ends what an earlier claim of this job, or a job that is over, left writing there. Raises `HandBack` when
    another job holds it, `PgToolsError`, `Stopped`.
    """
    hold = Hold(conninfo, name, folder, job_id)
    with ExitStack() as stack:
        stack.callback(hold.close)
        stack.enter_context(control.killing(hold.lines.stop))
        control.interruptibly(lambda: _take(hold, since, control))
        thread = threading.Thread(target=hold.watch, name="lock watch", daemon=True)
        thread.start()
        yield hold


def _take(hold: Hold, since: datetime, control: Control) -> None:
    """Nobody waits for this any more once the job was stopped: then it must not keep what it takes."""
    try:
        with hold.lines.asking():
            _lock_both(hold, since)
        control.check()
    except Stopped:
        hold.close()
        raise
    except psycopg.Error as error:
        reason = login_message(mask(str(error), hold.conninfo.secrets))
        raise QueryFailed(
            f'Taking the lock on "{hold.name}" at {hold.conninfo.host_label} failed: {reason}'
        ) from None


def _lock_both(hold: Hold, since: datetime) -> None:
    hold.session = sessions.maintenance(
        hold.conninfo, hold.name, hold.folder, hold.application_name, hold.lines.add
    )
    if hold.session is not None:
        sessions.end_own(hold.session, hold.application_name)
        _lock(hold, hold.session, key_of(hold.name), since)
        if hold.oid(hold.name) is None:
            return
    hold.inside = _enter(hold)
    if hold.inside is not None:
        if hold.session is None:
            sessions.end_own(hold.inside, hold.application_name)
        _lock(hold, hold.inside, INSIDE_KEY, since)
        strays.end(hold.inside, hold.name, hold.application_name)


def _enter(hold: Hold) -> Session | None:
    try:
        conninfo = hold.conninfo.replace_database(hold.name)
        return sessions.direct(conninfo, hold.folder, hold.application_name, hold.lines.add)
    except ConnectionFailed:
        if hold.session is None:
            raise
        return None  # the pre-flight tells what cannot be done with such a target


def oid_of(session: Session, name: str) -> int | None:
    """Of a database of the server that `session` is on; None: it has none of that name."""
    row = session.execute(EXISTS, [name]).fetchone()
    return int(row[0]) if row else None


def name_of(session: Session, oid: int | None) -> str | None:
    row = session.execute("SELECT datname FROM pg_catalog.pg_database WHERE oid = %s", [oid]).fetchone()
    return str(row[0]) if row else None


def key_of(name: str) -> int:
    """A signed 64-bit key for a database's name."""
    digest = hashlib.sha256(b"pgbr target\0" + name.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _lock(hold: Hold, session: Session, key: int, since: datetime) -> None:
    if _value(session, TRY_LOCK, key):
        return
    row = session.execute(LOCKED_BY, [DESERTED_SECONDS, key]).fetchone()
    holder, pid, deserted = row or ("", None, False)
    if deserted:
        session.execute(sessions.END, [pid])
    by = f"job {holder.removeprefix('pgbr/')}" if holder.startswith("pgbr/") else "another job"
    raise HandBack(
        f'Waits: {by} is writing into "{hold.name}" at {hold.conninfo.host_label}.',
        pause_while_waiting(since),
    )


def _is_broken(session: Session) -> bool:
    try:
        session.execute("SELECT 1")
    except psycopg.Error:
        return session.closed  # open: it was asked in the middle of a transaction that has failed
    return False


def _value(session: Session, query: str, parameter: Any) -> Any:
    row = session.execute(query.encode(), [parameter]).fetchone()
    return row[0] if row else None
