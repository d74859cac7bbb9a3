"""What a restore or migration has replaced: swap it back, or drop it, now or after its time."""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import psycopg
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from jobs import scratch
from jobs.crypto import CannotDecrypt
from jobs.models import MigrationJob, QueuedJob, RestoreJob
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import ConnectionFailed, PgToolsError
from jobs.pgtools.server import system_identifier
from jobs.processors.at_target import creation, names
from jobs.processors.at_target.lock import Hold, held, name_of, oid_of
from jobs.processors.at_target.protection import why_protected
from jobs.processors.at_target.sessions import Session
from jobs.processors.at_target.swap import Rename, swap
from jobs.processors.base import HandBack, JobFailed
from jobs.processors.control import Control
from jobs.restoring.orders import refuse_protected, require_visible
from jobs.secrets import unseal
from jobs.services import ServiceError, record, visible_to
from jobs.targets import conninfo_for, parse
from jobs.waiting import awaited, within

# Of an upkeep duty, for each database and for all of an account. A server goes on dropping when nobody waits.
EACH_SECONDS, ACCOUNT_SECONDS = 120.0, 300

log = logging.getLogger(__name__)

Row = RestoreJob | MigrationJob


def kept(user: User) -> list[Row]:
    """Whose replaced database is still there, as far as pgbr knows; the newest first."""
    rows: list[Row] = []
    for model in (RestoreJob, MigrationJob):
        rows += visible_to(user, model.objects.exclude(kept_name=None))
    return sorted(rows, key=lambda row: row.created_at, reverse=True)


def undo(row: Row, *, by: User) -> None:
    """Give the target's name back to the database it replaced; what was restored is kept beside.

    Takes seconds. Raises `NotFound`, `ServiceError`, `PgToolsError`; then nothing has changed, or to try
    again finds out that it has.
    """
    require_visible(row, by)
    if row.kept_name is None:
        raise ServiceError(
            f"Job {row.pk} keeps no replaced database (any more), so there is nothing to go back to."
        )
    _refuse_unfinished(row)
    refuse_protected(_conninfo(row), row.target_name)
    with awaited(by, "Undoing it") as control, holding(row, control) as hold:
        _refuse_protected(hold, row.target_name, hold.inside)
        _swap_back(hold, row)
    record(by, "undo", row, target=row.target_name)


def drop_kept(row: Row, *, by: User) -> None:
    """Drop the kept database for good. Raises `NotFound`, `ServiceError`, `PgToolsError`."""
    require_visible(row, by)
    _refuse_unfinished(row)
    with awaited(by, "Dropping it") as control:
        _drop(row, control)
    record(by, "drop kept", row, target=row.target_name)


@transaction.atomic
def forget(row: Row, *, by: User) -> None:
    """Delete the job from the history. Raises `NotFound`, or `ServiceError` while it runs or keeps a
    database, which nobody would know of afterwards."""
    require_visible(row, by)
    _refuse_unfinished(row)
    if row.kept_name is not None:
        raise ServiceError(
            f'Job {row.pk} still keeps "{row.kept_name}": undo it, or drop that database first.'
        )
    if row.temporary_name is not None:
        raise ServiceError(
            f'Job {row.pk} may have left "{row.temporary_name}" behind, which pgbr drops as soon as the '
            "server can be reached: delete the job after that."
        )
    record(by, "delete", row, target=row.target_name)
    row.delete()


def drop_expired() -> int:
    """Drop what has been kept for its time. An upkeep duty; what refuses is tried again next time."""
    count = 0
    rows: list[Row] = []
    for model in (RestoreJob, MigrationJob):
        rows += model.objects.filter(kept_until__lt=Now()).exclude(kept_name=None)
    for row in in_turns(rows):
        try:
            _refuse_unfinished(row)
            with within(EACH_SECONDS, "Dropping it") as control:
                _drop(row, control)
            count += 1
        except (ServiceError, PgToolsError, CannotDecrypt) as error:
            log.warning("the kept database %s is not dropped yet: %s", row.kept_name, error)
    return count


def in_turns(rows: Sequence[Row]) -> Iterator[Row]:
    """In any order, and of each account only as many as are dealt with in ACCOUNT_SECONDS: one whose servers
    do not answer must not keep the duty from everybody else's."""
    spent: Counter[int] = Counter()
    for row in random.sample(rows, len(rows)):
        if spent[row.user_id] < ACCOUNT_SECONDS:
            started = time.monotonic()
            yield row
            spent[row.user_id] += round(time.monotonic() - started)


def _swap_back(hold: Hold, row: Row) -> None:
    now, back = hold.oid(row.target_name), hold.oid(row.kept_name or "")
    if now == row.kept_oid and now is not None:
        # Done before, and only the answer got lost; what lies aside is told by its oid.
        aside = name_of(hold.orders, row.landed_oid)
        _remember_undone(row, aside, row.landed_oid if aside else None)
        return
    if now is None or now != row.landed_oid or back is None or back != row.kept_oid:
        raise ServiceError(
            f'The databases "{row.target_name}" and "{row.kept_name}" at {hold.conninfo.host_label} are '
            "not those that this job left there: somebody renamed, dropped or replaced them since. Nothing "
            "was done."
        )
    aside = names.aside(row.target_name, "undone", datetime.now(UTC), hold.has)
    hold.leave_inside()
    renames = [Rename(row.target_name, aside, now), Rename(row.kept_name or "", row.target_name, back)]
    try:
        swap(hold.orders, renames, hold.open)
    except psycopg.Error as error:
        # The answer to the COMMIT may be what got lost.
        with hold.open() as another:
            if oid_of(another, row.target_name) != back:
                raise ServiceError(f"The server broke off, and nothing was changed: {error}") from error
    _remember_undone(row, aside, now)


def _remember_undone(row: Row, kept_name: str | None, kept_oid: int | None) -> None:
    """From now on it is the restored one that lies aside."""
    row.kept_name, row.kept_oid, row.landed_oid = kept_name, kept_oid, row.kept_oid
    row.undone_at = datetime.now(UTC)
    row.save(update_fields=["kept_name", "kept_oid", "landed_oid", "undone_at"])


def _drop(row: Row, control: Control) -> None:
    if row.kept_name is None:
        raise ServiceError(f"Job {row.pk} keeps no replaced database (any more).")
    with holding(row, control) as hold:
        found = hold.oid(row.kept_name)
        if found is not None and found != row.kept_oid:
            raise ServiceError(
                f'"{row.kept_name}" at {hold.conninfo.host_label} is not the database that this job kept: '
                "it was left alone."
            )
        if found is not None:
            refuse_protected(hold.conninfo, row.kept_name)
            with suppress(ConnectionFailed), hold.open(row.kept_name) as inside:
                _refuse_protected(hold, row.kept_name, inside)
        creation.drop(hold.orders, row.kept_name)
    row.kept_name = row.kept_oid = row.kept_until = None
    row.save(update_fields=["kept_name", "kept_oid", "kept_until"])


def _refuse_unfinished(row: Row) -> None:
    if QueuedJob.objects.filter(id=row.pk, status__in=["pending", "active"]).exists():
        raise ServiceError(f"Job {row.pk} has not ended yet: wait for it, or cancel it.")


def _refuse_protected(hold: Hold, name: str, inside: Session | None) -> None:
    if reason := why_protected(hold.conninfo, name, system_identifier(hold.orders), inside, hold.folder):
        raise ServiceError(f"Nothing was done: {reason}")


@contextmanager
def holding(row: Row, control: Control) -> Iterator[Hold]:
    """The target's lock, as a worker takes it. Raises `ServiceError` when a job is writing there."""
    conninfo = _conninfo(row)
    try:
        with (
            scratch.folder("undo") as folder,
            held(conninfo, row.target_name, folder, row.pk, row.created_at, control) as hold,
        ):
            yield hold
    except HandBack as busy:
        raise ServiceError(f"Not now: {busy}") from busy
    except JobFailed as error:
        raise ServiceError(str(error)) from error
    except psycopg.Error as error:
        raise ServiceError(f"{conninfo.host_label} gave an error: {str(error).strip()}") from error


def _conninfo(row: Row) -> Conninfo:
    if isinstance(row, MigrationJob) and row.target_sealed_url:
        return parse(unseal(row.target_sealed_url, "The URL of the target"), owner=row.user)
    database: Any = row.target_database if isinstance(row, MigrationJob) else row.database
    if database is None:
        raise ServiceError("The connection that this job used is not registered any more: rename it by hand.")
    return conninfo_for(database)
