"""Ordering a restore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import models, transaction

from jobs.models import BackupJob, Database, RestoreJob, Upload
from jobs.models.base import Queue
from jobs.models.history import Status
from jobs.models.storage import CopyState
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import InvalidFlags
from jobs.pgtools.restore_flags import RestoreFlags, mode_problems
from jobs.pgtools.restore_options import MODES
from jobs.processors.at_target import names
from jobs.processors.at_target.protection import protected_by_address
from jobs.services import NotFound, ServiceError, enqueue, record, visible_to
from jobs.targets import conninfo_for

LONGEST_NAME = names.LONGEST


@dataclass(frozen=True)
class RestoreOrder:
    """From `backup` or `upload` into the database `target_name` on the server of `database`, with its login.

    `mode`: one of `MODES`. `flags`: as `RestoreFlags` takes them.
    """

    database: Database
    mode: str
    target_name: str
    flags: Mapping[str, Any] = field(default_factory=dict)
    backup: BackupJob | None = None
    upload: Upload | None = None


@transaction.atomic
def enqueue_restore(order: RestoreOrder, *, by: User) -> UUID:
    """Queue it for the database's owner; the job's id.

    Raises `InvalidFlags` with every problem, `NotFound`, `ServiceError`.
    """
    require_visible(order.database, by)
    require_target(order.mode, order.target_name)
    flags = RestoreFlags.from_dict(order.flags)
    if problems := mode_problems(flags, order.mode, plain=True):
        raise InvalidFlags(problems)
    refuse_protected(conninfo_for(order.database), order.target_name)
    payload = {
        "database_id": str(order.database.id),
        "database_name": order.database.name,
        "target_name": order.target_name,
        "mode": order.mode,
        "flags": flags.to_dict(),
    } | _source(order, by)
    job_id = enqueue(Queue.RESTORE, order.database.user_id, payload)
    record(by, "restore", order.database, job=str(job_id), mode=order.mode, target=order.target_name)
    return job_id


def rerun_restore(row: RestoreJob, *, by: User) -> UUID:
    """A new job like an old one. Raises `ServiceError` when what it needs is gone."""
    if row.database is None:
        raise ServiceError(f"The database {row.database_name!r} is not registered any more.")
    if row.backup is None and row.upload is None:
        raise ServiceError(f"What job {row.id} restored, {row.source_name!r}, is not there any more.")
    order = RestoreOrder(row.database, row.mode, row.target_name, row.flags, row.backup, row.upload)
    return enqueue_restore(order, by=by)


def require_visible(row: models.Model, by: User) -> None:
    if not visible_to(by, type(row)._default_manager.filter(pk=row.pk)).exists():
        raise NotFound(f"There is no {row._meta.verbose_name} {row.pk}.")


def require_target(mode: str, name: str) -> None:
    if mode not in MODES:
        raise ServiceError(f"The way to restore must be one of {', '.join(MODES)}.")
    if problem := names.problem_with(name):
        raise ServiceError(problem)


def refuse_protected(conninfo: Conninfo, name: str) -> None:
    """By its address; the worker, which logs in, knows it by more than that."""
    if reason := protected_by_address(conninfo, name):
        raise ServiceError(f"Nothing can be restored there: {reason}")


def _source(order: RestoreOrder, by: User) -> dict[str, Any]:
    if order.backup is not None:
        return _of_backup(order.backup, order.database, by)
    if order.upload is not None:
        return _of_upload(order.upload, order.database, by)
    raise ServiceError("Choose what to restore: a backup or an uploaded file.")


def _of_backup(backup: BackupJob, database: Database, by: User) -> dict[str, Any]:
    require_visible(backup, by)
    _require_stays(backup)
    if backup.status != Status.COMPLETED:
        raise ServiceError(
            f"The backup {backup.id} is {backup.status}: only a completed one can be restored."
        )
    _require_one_owner(backup, database)
    moment = backup.started_at or backup.created_at
    return {
        "backup_id": str(backup.id),
        "source_name": f"{backup.database_name}, {moment:%Y-%m-%d %H:%M} UTC",
    }


def _require_stays(backup: BackupJob) -> None:
    """Whoever deletes a backup locks it, then looks for jobs that need it."""
    list(BackupJob.objects.select_for_update(no_key=True).filter(id=backup.id).values_list("id"))
    copies = set(backup.copies.values_list("state", flat=True))
    if CopyState.DELETING in copies and CopyState.GOOD not in copies:
        raise ServiceError(f"The backup {backup.id} is being deleted: choose another one.")


def _of_upload(upload: Upload, database: Database, by: User) -> dict[str, Any]:
    require_visible(upload, by)
    # Whoever deletes an upload locks it, then looks for jobs that need it.
    upload = Upload.objects.select_for_update().get(pk=upload.pk)
    if upload.state != CopyState.GOOD:
        raise ServiceError(f"The upload {upload.name!r} is not complete: send the file again.")
    _require_one_owner(upload, database)
    return {"upload_id": str(upload.id), "source_name": upload.name}


def _require_one_owner(source: BackupJob | Upload, database: Database) -> None:
    if source.user_id != database.user_id:
        raise ServiceError(
            f"The database {database.name!r} belongs to another account than what is to be restored. "
            "Register the database for that account, too."
        )
