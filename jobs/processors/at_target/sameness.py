"""Are two databases one and the same, however their addresses are spelt?

System identifier and oid tell it for all but copies: a server that was cloned from a disk snapshot has both
of its origin. Those are told apart by a lock, which only sessions of one server see.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import psycopg

from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed
from jobs.pgtools.hints import login_message
from jobs.pgtools.limit import Limit
from jobs.pgtools.mask import mask
from jobs.pgtools.server import system_identifier
from jobs.processors.at_target.lock import EXISTS, Hold
from jobs.processors.at_target.sessions import Session
from jobs.processors.base import JobFailed
from jobs.processors.source import Source

TAKE = "SELECT pg_catalog.pg_advisory_lock(%s)"
TRY = "SELECT pg_catalog.pg_try_advisory_lock(%s)"
RELEASE = "SELECT pg_catalog.pg_advisory_unlock(%s)"
LOOK_SECONDS, LOGIN_SECONDS = 20.0, 10


def is_same(source: Source, target: Session | None, folder: Path) -> bool:
    """Is the source the database that `target` is in (None: there is none), or a replica of it?"""
    if target is None:
        return False
    identifier = system_identifier(target)
    if identifier and source.facts.system_identifier:
        row = target.execute(EXISTS, [target.info.dbname]).fetchone()
        if row is None or (identifier, row[0]) != (source.facts.system_identifier, source.facts.oid):
            return False
    return (source.facts.in_recovery and bool(identifier)) or meets(source.conninfo, target, folder)


def meets(conninfo: Conninfo, session: Session, folder: Path) -> bool:
    """Does `conninfo` lead to the very database that `session` is in? Raises `ConnectionFailed`, also for a
    server that does not answer within LOOK_SECONDS or answers with an error."""
    key = secrets.randbits(62)
    beside = folder / "other"  # the password file of the one must not be the other's
    beside.mkdir(exist_ok=True)
    name = session.info.parameter_status("application_name") or "pgbr"
    try:
        with Limit(LOOK_SECONDS) as limit, conninfo.impatient(LOGIN_SECONDS).connect(beside, name) as other:
            limit.watch(other)
            other.execute(TAKE, [key])
            return not try_lock(session, key)
    except psycopg.Error as error:
        if session.broken:
            raise
        reason = login_message(mask(str(error), conninfo.secrets))
    raise ConnectionFailed(f"{conninfo.host_label} was asked which database it is, and failed: {reason}")


def try_lock(session: Session, key: int) -> bool:
    """Is this lock free? It is not kept."""
    row = session.execute(TRY, [key]).fetchone()
    free = bool(row and row[0])
    if free:
        session.execute(RELEASE, [key])
    return free


def require_another(source: Source, hold: Hold) -> None:
    """Raises `JobFailed` when source and target are the same."""
    if is_same(source, hold.inside, hold.folder):
        raise JobFailed(
            f'Source and target are the same database, "{source.facts.dbname}" at '
            f"{hold.conninfo.host_label}. Nothing was done. To have a copy on the same server, choose "
            "another name for it."
        )
