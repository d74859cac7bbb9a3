"""At most so many dumps at once on a server, for databases that ask for it (Database.max_parallel).

A dump holds one numbered advisory lock of the server, through a session of its own, for as long as it runs.
Such locks are per database, so all meet in "postgres". Dumps without a limit hold none and are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jobs.backoff import pause_while_waiting
from jobs.pgtools.asking import Session, asking
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed
from jobs.pgtools.limit import Limit
from jobs.processors.base import HandBack
from jobs.processors.control import Control
from jobs.queue.rows import Job

CLASS = 0x70676273  # "pgbs": the first key of the lock, the second is the slot's number from 1
MEETING_PLACE = "postgres"
LONGEST_SECONDS = 60.0
# An idle session is what holds the lock. Before version 14 there is no such timeout to lift.
STAY = """
SELECT pg_catalog.set_config(name, '0', false)
FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'
"""
TRY = "SELECT pg_catalog.pg_try_advisory_lock(%s, %s)"
# objsubid 2 is what pg_locks says of locks with two keys.
RUNNING = """
SELECT pg_catalog.count(*)
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
WHERE d.datname = pg_catalog.current_database()
  AND l.locktype = 'advisory' AND l.classid::bigint = %s AND l.objsubid = 2 AND l.granted
"""


@dataclass(frozen=True)
class Slot:
    """Held for as long as `session` is open. `warnings` are for the history."""

    session: Session
    warnings: list[str]


@contextmanager
def held(
    conninfo: Conninfo, limit: int | None, job: Job, folder: Path, control: Control
) -> Iterator[list[str]]:
    """One of the `limit` slots of the database's server while inside (None: no limit); yields warnings.

    Call it when sessions that an earlier claim of the job left there have been ended. Should the slot's own
    session break meanwhile, another dump may start early; this one goes on. Raises `HandBack` when no slot
    is free, `ConnectionFailed`, `QueryFailed`, `Stopped`.
    """
    if limit is None:
        yield []
        return
    slot = control.interruptibly(partial(_take, conninfo, limit, job, folder, control))
    try:
        yield slot.warnings
    finally:
        slot.session.close()


def _take(conninfo: Conninfo, limit: int, job: Job, folder: Path, control: Control) -> Slot:
    slot = _meet(conninfo, limit, folder, f"pgbr/{job.id}")
    try:
        _number(slot.session, conninfo, limit, job)
        control.check()  # nobody takes over what a stopped job has asked for
    except BaseException:
        slot.session.close()
        raise
    return slot


def _meet(conninfo: Conninfo, limit: int, folder: Path, application_name: str) -> Slot:
    """Not numbered yet. Where "postgres" is closed to the login, dumps of the same database still meet."""
    try:
        place = conninfo.replace_database(MEETING_PLACE)
        return Slot(place.connect(folder, application_name), [])
    except ConnectionFailed as error:
        if conninfo.dbname == MEETING_PLACE:
            raise
        warning = (
            f'The limit of {limit} at once counted dumps of "{conninfo.dbname}" alone, not of the server\'s '
            f"other databases. {error} Dumps are counted there: let the login connect to it."
        )
    return Slot(conninfo.connect(folder, application_name), [warning])


def _number(session: Session, conninfo: Conninfo, limit: int, job: Job) -> None:
    """Take the lowest free number. Databases of one server may have different limits: a number that has come
    free is not enough, the sum counts."""
    with Limit(LONGEST_SECONDS) as patience:
        patience.watch(session)
        with asking(session):
            session.execute(STAY)
            taken = any(_value(session, TRY, CLASS, number) for number in range(1, limit + 1))
            others = _value(session, RUNNING, CLASS) - taken
    if not taken or others >= limit:
        raise HandBack(_reason(conninfo, max(others, 1), limit), pause_while_waiting(job.created_at))


def _value(session: Session, query: str, *parameters: int) -> int:
    row = session.execute(query, parameters).fetchone()
    return int(row[0]) if row else 0


def _reason(conninfo: Conninfo, running: int, limit: int) -> str:
    are = "dump is" if running == 1 else "dumps are"
    return (
        f"{running} {are} running on {conninfo.host_label}, at most {limit} at once: it waits for its turn."
    )
