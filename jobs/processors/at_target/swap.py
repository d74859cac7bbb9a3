"""Names change hands in one transaction: whoever looks sees the old database or the new one, never
neither."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from jobs.pgtools.errors import PgToolsError
from jobs.processors.at_target import sessions
from jobs.processors.at_target.lock import oid_of
from jobs.processors.at_target.sessions import Open, Session

TRIES = 5
PAUSE_SECONDS = 0.5
STUBBORN_SECONDS = 5.0  # for those who cannot be sent away to leave
# A rename waits for those who are in the database and keeps others out meanwhile: never for longer than this.
LIMITS = "SET LOCAL statement_timeout = '1500ms'; SET LOCAL lock_timeout = '1500ms'"
RENAME = sql.SQL("ALTER DATABASE {} RENAME TO {}")
BUSY = (psycopg.errors.ObjectInUse, psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)


class SwapFailed(PgToolsError):
    """Names are as they were; the message says why."""


@dataclass(frozen=True)
class Rename:
    """`oid`: of the database that is meant, whatever is called `old` by then."""

    old: str
    new: str
    oid: int


def swap(session: Session, renames: Sequence[Rename], open_another: Open) -> None:
    """All of the renames or none. Those connected to the databases are sent away.

    `session` is in none of them and outside a transaction. Raises `SwapFailed`, or psycopg's error when the
    connection breaks: then look at the oids to see what holds.
    """
    names = [rename.old for rename in renames]
    with sessions.emptied(names, session, open_another) as stubborn:
        for attempt in range(1, TRIES + 1):
            _let_leave(names, stubborn)
            try:
                _rename_all(session, renames)
            except BUSY as error:
                if attempt == TRIES:
                    raise SwapFailed(_busy(names, stubborn, _first_line(error))) from error
                time.sleep(PAUSE_SECONDS)
            except psycopg.errors.OperationalError:
                raise
            except psycopg.Error as error:
                raise SwapFailed(f"Renaming {_listed(names)} failed: {_first_line(error)}.") from error
            else:
                return


def _let_leave(names: Sequence[str], stubborn: Sequence[str]) -> None:
    """To try to rename meanwhile would only keep others out."""
    deadline = time.monotonic() + STUBBORN_SECONDS
    while stubborn:
        if time.monotonic() > deadline:
            raise SwapFailed(_busy(names, stubborn, "it is in use"))
        time.sleep(sessions.AGAIN_SECONDS)


def _rename_all(session: Session, renames: Sequence[Rename]) -> None:
    with session.transaction():
        session.execute(LIMITS)
        for rename in renames:
            session.execute(RENAME.format(sql.Identifier(rename.old), sql.Identifier(rename.new)))
            # Between two looks somebody else may give a name to another database.
            if oid_of(session, rename.new) != rename.oid:
                raise SwapFailed(f'"{rename.old}" was renamed or replaced meanwhile. It was left as it is.')


def _busy(names: Sequence[str], stubborn: Sequence[str], reason: str) -> str:
    who = (
        f" In it is {', '.join(sorted(set(stubborn))[:5])}, which this login may not end." if stubborn else ""
    )
    return (
        f"{_listed(names)} cannot be renamed: {reason}.{who} Stop what uses it, or let the "
        "login end other sessions (GRANT pg_signal_backend), then run it again. Nothing was changed."
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f'"{name}"' for name in names)


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]
