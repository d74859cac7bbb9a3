"""The trash: backups that people delete, and copies that a tightened policy gives up, wait TRASH_DAYS.

Until then they can be taken back, restored and downloaded. A backup waits as a whole (`trashed_at`), a copy
that a schedule's policy gives up in one storage by itself (`delete_after`, see `schedules.prune`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from jobs import deleting
from jobs.models import BackupCopy, BackupJob, QueuedJob
from jobs.models.history import Status
from jobs.models.storage import CopyState
from jobs.services import NotFound, ServiceError, record, visible_to

REQUEST_SECONDS = 5.0  # of deleting while somebody waits; the duty does the rest


def put(backup: BackupJob, *, by: User, reason: str = "") -> None:
    """Into the trash, or with TRASH_DAYS 0 out of the world. What is there already stays as it is.

    Raises `NotFound`, or `ServiceError` for what is pinned, has not ended, or (with TRASH_DAYS 0) is needed.
    """
    if settings.TRASH_DAYS == 0:
        for_good(backup, by=by)
        return
    with transaction.atomic():
        row = _deletable(backup, by)
        if row.trashed_at is None:
            reason = reason or f"Deleted by {by.get_username()}."
            BackupJob.objects.filter(id=row.id).update(trashed_at=Now(), trash_reason=reason)
            _record(by, "trash", row)


def take_back(backup: BackupJob, *, by: User) -> bool:
    """Out of the trash; whether it is pinned now: one of a schedule is, or retention would take it again.

    Raises `NotFound`, or `ServiceError` for what is being deleted or never was in the trash.
    """
    with transaction.atomic():
        row = _locked(backup, by)
        given_up = row.copies.filter(delete_after__isnull=False)
        if row.trashed_at is None and not given_up.exists():
            raise ServiceError(f"{_name(row)} is not in the trash.")
        _refuse_leaving(row)
        pinned = row.pinned or (row.schedule_id is not None and row.status == Status.COMPLETED)
        deleting.keep(row.copies.all())
        BackupJob.objects.filter(id=row.id).update(trashed_at=None, trash_reason="", pinned=pinned)
        _record(by, "take back", row)
    return pinned


def for_good(
    backup: BackupJob, *, by: User, seconds: float = REQUEST_SECONDS, away: set[UUID] | None = None
) -> bool:
    """Delete it within so many seconds, but not from storages that are `away`; whether it is gone. Else its
    copies say what is in the way, which is tried again; or it is locked, and stays in the trash for so long.

    Raises `NotFound`, or `ServiceError` for what is pinned, has not ended, or is wanted by a restore.
    """
    with transaction.atomic():
        row = _deletable(backup, by)
        if deleting.wanted_by_restores([row.id]):
            raise ServiceError(f"{_name(row)}: a restore from it waits or runs. Cancel that first.")
        BackupJob.objects.filter(id=row.id, trashed_at=None).update(trashed_at=Now())
        _record(by, "delete", row)
        if deleting.mark_all(row):
            return True
    deleting.work_off(BackupCopy.objects.filter(backup_id=backup.id), seconds=seconds, away=away)
    return not BackupJob.objects.filter(id=backup.id).exists()


def pin(backup: BackupJob, pinned: bool, *, by: User) -> None:
    """Retention keeps what is pinned, also what a tightened policy had given up.

    Raises `NotFound`, or `ServiceError` for what is in the trash or being deleted.
    """
    with transaction.atomic():
        row = _locked(backup, by)
        if pinned:
            if row.trashed_at is not None:
                raise ServiceError(f"{_name(row)} is in the trash: take it back instead.")
            _refuse_leaving(row)
            deleting.keep(row.copies.all())
        BackupJob.objects.filter(id=row.id).update(pinned=pinned)
        _record(by, "pin" if pinned else "unpin", row)


def leaves_at(backup: BackupJob) -> datetime | None:
    """When it is deleted for good; None: it is not in the trash. Of a backup with several copies that are
    given up, when the first goes."""
    if backup.trashed_at is not None:
        return backup.trashed_at + timedelta(days=settings.TRASH_DAYS)
    return min((copy.delete_after for copy in backup.copies.all() if copy.delete_after), default=None)


def in_trash() -> Q:
    """Backups that wait, as a whole or with some of their copies."""
    given_up = BackupCopy.objects.filter(backup=OuterRef("pk"), delete_after__isnull=False)
    return Q(trashed_at__isnull=False) | Q(Exists(given_up))


# The duty ----------------------------------------------------------------------------------------


def empty_due() -> int:
    """Mark what has waited for long enough, and delete it; how many copies and histories are gone. An upkeep
    duty."""
    gone = sum(_condemn(backup_id) for backup_id in list(_overdue().values_list("id", flat=True)))
    marked = BackupCopy.objects.filter(backup__trashed_at__isnull=False)
    return gone + deleting.work_off(marked)


def _overdue() -> QuerySet[BackupJob]:
    """Those with something to try: not the ones whose every copy is being deleted, locked or put off."""
    copies = BackupCopy.objects.filter(backup=OuterRef("pk"))
    to_try = copies.filter(deleting.due() & deleting.unlocked()).exclude(state=CopyState.DELETING)
    rows = BackupJob.objects.filter(Exists(to_try) | ~Exists(copies), pinned=False)
    return rows.filter(trashed_at__lte=Now() - timedelta(days=settings.TRASH_DAYS)).order_by("trashed_at")


@transaction.atomic
def _condemn(backup_id: UUID) -> bool:
    for backup in deleting.locked(_overdue().filter(id=backup_id), wait=False):
        if not deleting.wanted_by_restores([backup_id]) and not _is_unfinished(backup_id):
            return deleting.mark_all(backup)
    return False


def _is_unfinished(backup_id: UUID) -> bool:
    return QueuedJob.objects.filter(id=backup_id, status__in=["pending", "active"]).exists()


# Rows, locked ------------------------------------------------------------------------------------


def _locked(backup: BackupJob, by: User) -> BackupJob:
    visible = visible_to(by, BackupJob.objects.filter(id=backup.id))
    for row in deleting.locked(visible):
        return row
    raise NotFound(f"There is no backup {backup.id}.")


def _deletable(backup: BackupJob, by: User) -> BackupJob:
    row = _locked(backup, by)
    if _is_unfinished(row.id):
        raise ServiceError(f"Backup {row.id} has not ended yet: cancel it first.")
    if row.pinned:
        raise ServiceError(f"{_name(row)} is pinned: unpin it first.")
    return row


def _refuse_leaving(row: BackupJob) -> None:
    states = set(row.copies.values_list("state", flat=True))
    if CopyState.DELETING in states and CopyState.GOOD not in states:
        raise ServiceError(f"{_name(row)} is being deleted already: it cannot be kept any more.")


def _name(row: BackupJob) -> str:
    return f"Backup {row.id} of {row.database_name!r}"


def _record(by: User, action: str, row: BackupJob) -> None:
    record(by, action, row, database=row.database_name, storage_key=row.storage_key)
