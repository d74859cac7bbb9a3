"""Where a restore writes, and how what it has written becomes the target.

"beside": into a database of a temporary name, which takes the target's name in one step when all is well.
"in place": into the target itself, normally in a single transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from django.db.models.functions import Now
from django.db.utils import Error

from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, PgToolsError
from jobs.processors.at_target import creation, names, sessions, swap
from jobs.processors.at_target.creation import Properties
from jobs.processors.at_target.lock import Hold, oid_of
from jobs.processors.at_target.sessions import Session
from jobs.processors.at_target.swap import Rename, SwapFailed
from jobs.processors.base import JobFailed
from jobs.processors.control import Control
from jobs.queue import finish
from jobs.queue.connections import borrowed
from jobs.queue.rows import AlreadyEnded, ClaimLost, Job

# A server that crashed and starts again takes its time.
ASK_TIMES, ASK_SECONDS = 15, 2.0
NOTHING_KEPT: dict[str, Any] = {"kept_name": None, "kept_oid": None, "kept_until": None}
NOTHING_LANDED: dict[str, Any] = NOTHING_KEPT | {"landed_oid": None}
LEFTOVERS = "SELECT datname FROM pg_catalog.pg_database WHERE pg_catalog.starts_with(datname::text, %s)"

log = logging.getLogger(__name__)


class Undecided(JobFailed):
    """Nobody can tell whether the names were changed."""


@dataclass
class Landing:
    """`conninfo` is where the tools write. `single_transaction`: a rollback undoes all of it."""

    conninfo: Conninfo
    beside: bool
    single_transaction: bool
    land: Callable[[], dict[str, Any]]  # make it the target; columns of the history row
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Wish:
    """What a job wants to do to its target. `settings` are the source database's, by name."""

    mode: str
    beside: bool
    single_transaction: bool
    keep_days: int
    properties: Properties
    owner: str  # of a new database; "" for the login. A replaced one's stays.
    settings: Mapping[str, Any]


def remember(job: Job, control: Control, **columns: Any) -> None:
    """Into the history row, whatever the database of ours is going through; raises `ClaimLost` if the job is
    somebody else's by now, before anything is done."""
    control.patiently(lambda: finish.progress(job, **columns))


def clear_leftovers(hold: Hold, job_id: UUID) -> None:
    """Drop what earlier claims of this job were restoring into."""
    if hold.session is None:
        return
    for (name,) in hold.session.execute(LEFTOVERS, [names.temporary_prefix(job_id)]).fetchall():
        creation.drop(hold.session, name)


@contextmanager
def landing(hold: Hold, job: Job, wish: Wish, control: Control) -> Iterator[Landing]:
    """Raises `JobFailed`; leaves no temporary database behind, or the row says that there may be one."""
    if not wish.beside:
        remember(job, control, touched_at=Now())
        inside = hold.conninfo.replace_database(hold.name)
        yield Landing(inside, False, wish.single_transaction, dict)
        return
    name = names.temporary(job.id, job.claim_id)
    remember(job, control, temporary_name=name)
    settled = True
    try:
        place = Landing(hold.conninfo.replace_database(name), True, wish.single_transaction, dict)
        owner = wish.owner if wish.mode == "new" else creation.owner_of(hold.orders, hold.name)
        with _cancelling(hold.orders, control):
            place.warnings += creation.create(hold.orders, name, wish.properties, owner)
        place.land = lambda: _take_place(hold, job, wish, control, name, place.warnings)
        yield place
    except Undecided:
        settled = False
        raise
    finally:
        if _dropped(hold, name) and settled:
            _forget_temporary(job)


def _take_place(
    hold: Hold, job: Job, wish: Wish, control: Control, name: str, warnings: list[str]
) -> dict[str, Any]:
    hold.check()
    session = hold.orders
    old = hold.oid(hold.name)
    if wish.mode == "new" and old is not None:
        raise JobFailed(
            f'A database called "{hold.name}" was created at {hold.conninfo.host_label} meanwhile. It was '
            "left alone. Choose another name, or replace it."
        )
    landed = hold.oid(name)
    if landed is None:
        raise JobFailed(f'The database "{name}", which was being restored, was dropped or renamed meanwhile.')
    renames = [Rename(name, hold.name, landed)]
    columns: dict[str, Any] = NOTHING_KEPT | {"landed_oid": landed}
    if wish.mode != "new":
        if old is None:
            raise JobFailed(
                f'The database "{hold.name}" was dropped or renamed meanwhile. Restore it as a new one.'
            )
        warnings += creation.take_over(session, hold.name, name)
        kept = names.aside(hold.name, "before", datetime.now(UTC), hold.has)
        renames.insert(0, Rename(hold.name, kept, old))
        until = datetime.now(UTC) + timedelta(days=wish.keep_days) if wish.keep_days else None
        columns |= {"kept_name": kept, "kept_oid": old, "kept_until": until}
    # Before the swap: should this worker die now, the next one tells by the oids whether it took place.
    remember(job, control, **columns)
    hold.leave_inside()
    _swap(hold, renames, columns["landed_oid"], control)
    return columns | settle(hold, wish.mode, columns["kept_name"], columns["kept_oid"])


def _swap(hold: Hold, renames: list[Rename], landed_oid: int, control: Control) -> None:
    try:
        swap.swap(hold.orders, renames, hold.open)
    except SwapFailed as error:
        raise JobFailed(str(error), **NOTHING_LANDED) from error
    except psycopg.Error as error:
        # The answer to the COMMIT may be what got lost.
        if _has_landed(hold, landed_oid, control):
            return
        reason = str(error).strip().partition("\n")[0]
        raise JobFailed(
            f"The server broke off while names were changed, which was not done: {reason}", **NOTHING_LANDED
        ) from error


def _has_landed(hold: Hold, oid: int, control: Control) -> bool:
    """Asks a server that broke off, which may be starting again. Raises `Undecided` when nobody can tell."""
    for _ in range(ASK_TIMES):
        try:
            with hold.open() as session:
                return oid_of(session, hold.name) == oid
        except (psycopg.Error, ConnectionFailed) as error:
            trouble: Exception = error
        if control.wait(ASK_SECONDS):
            break
    raise Undecided(
        f"The connection to {hold.conninfo.host_label} broke while names were changed, and since then nobody "
        f'could ask whether they were: "{hold.name}" is either the database of before or the restored one. '
        "pgbr goes on asking, and will say it here."
    ) from trouble


def settle(hold: Hold, mode: str, kept_name: str | None, kept_oid: int | None) -> dict[str, Any]:
    """What was replaced by way of an empty database is not worth keeping; columns of the history row."""
    if mode != "empty" or kept_name is None:
        return {}
    try:
        if hold.oid(kept_name) == kept_oid:
            creation.drop(hold.orders, kept_name)
    except psycopg.Error as error:  # all is done but for this: it goes when its time is over
        log.warning("the emptied database %s is not dropped yet: %s", kept_name, str(error).strip())
        return {}
    return dict(NOTHING_KEPT)


def already_landed(hold: Hold, row: Any) -> bool:
    """Has an earlier claim of this job got as far as the swap? `row`: the history row."""
    return row.landed_oid is not None and hold.session is not None and hold.oid(hold.name) == row.landed_oid


def _dropped(hold: Hold, name: str) -> bool:
    """Is it gone? Once landed there is none of that name. The session at hand may be what broke."""
    try:
        try:
            creation.drop(hold.orders, name)
        except psycopg.Error:
            with hold.open() as another:
                creation.drop(another, name)
    except (psycopg.Error, PgToolsError, JobFailed) as error:
        log.warning("the temporary database %s may be left behind: %s", name, str(error).strip())
        return False
    return True


def _forget_temporary(job: Job) -> None:
    """What cannot be written now is settled later."""
    with suppress(ClaimLost, AlreadyEnded, Error), borrowed():
        finish.progress(job, temporary_name=None)


@contextmanager
def _cancelling(session: Session, control: Control) -> Iterator[None]:
    """A statement that takes long, such as CREATE DATABASE, ends when the job is told to stop."""
    with control.killing(lambda: sessions.cancel(session)):
        try:
            yield
        except psycopg.errors.QueryCanceled:
            control.check()
            raise
