"""The rows of backup_copies around the objects they stand for.

A row is there before the first byte is, and names what it takes to clear the object away: so an object
without a verdict can be found and removed by whoever comes next, however its worker ended.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob, QueuedJob, Storage
from jobs.models.storage import CopyState, StorageKind
from jobs.processors.control import Control
from jobs.queue.connections import borrowed
from jobs.queue.rows import Job
from jobs.storage.base import StoreError
from jobs.storage.keys import globals_key, manifest_key
from jobs.stores import store_for

DAMAGED_PAUSE = timedelta(minutes=1)

log = logging.getLogger(__name__)


def begin(job: Job, storage: Storage, key: str) -> BackupCopy:
    """May be called again when the answer to the first call got lost."""
    return BackupCopy.objects.get_or_create(
        storage=storage,
        storage_key=key,
        claim_id=job.claim_id,
        defaults={"backup_id": job.id, "state": CopyState.WRITING},
    )[0]


def remember_token(copy: BackupCopy, control: Control, token: str) -> None:
    """Called by a writer once its store has given the unfinished object a name.

    Also kept in memory: a worker that lost its claim clears its object away when the row has gone already.
    """
    copy.upload_token = token
    control.patiently(lambda: BackupCopy.objects.filter(id=copy.id).update(upload_token=token))


def mark_good(copy_id: UUID, *, size: int, sha256: str, has_globals: bool) -> None:
    BackupCopy.objects.filter(id=copy_id).update(
        state=CopyState.GOOD,
        upload_token="",
        size=size,
        sha256=sha256,
        has_globals=has_globals,
        completed_at=Now(),
        verified_at=Now(),
    )


def good(backup: BackupJob) -> list[BackupCopy]:
    """What can be read of it, the first choice in front: folders, which are near and cost no traffic, then
    the oldest."""
    rows = backup.copies.filter(state=CopyState.GOOD).select_related("storage").order_by("created_at")
    return sorted(rows, key=lambda copy: copy.storage.kind != StorageKind.FOLDER)


def troubles(backup: BackupJob) -> list[str]:
    """Why those of its copies that failed cannot be read."""
    rows = backup.copies.filter(state=CopyState.FAILED, error__isnull=False).order_by("created_at")
    return [copy.error or "" for copy in rows]


def mark_damaged(copy_id: UUID, error: str) -> None:
    """Nobody reads from it any more. It is looked at again soon (`jobs.copying`): found whole after all it is
    good again, and where there is another good copy it is made anew."""
    BackupCopy.objects.filter(id=copy_id, state=CopyState.GOOD).update(
        state=CopyState.FAILED, claim_id=None, error=error, next_attempt_at=Now() + DAMAGED_PAUSE
    )


def clear(copy: BackupCopy) -> bool:
    """Remove an object that has no verdict, then its row; whether that worked. The sweep tries again.

    Asks the database first: whatever made somebody believe that there is no verdict, a good copy stays.
    """
    with borrowed():
        if BackupCopy.objects.filter(id=copy.id, state=CopyState.GOOD).exists():
            return False
    try:
        store = store_for(copy.storage)
        store.discard(copy.storage_key, copy.upload_token)
        for key in (copy.storage_key, globals_key(copy.storage_key), manifest_key(copy.storage_key)):
            store.discard_all(key)
            store.delete(key)
    except (StoreError, CannotDecrypt) as error:
        log.warning("could not clear away %s: %s", copy.storage_key, error, extra={"job": copy.backup_id})
        with borrowed():
            BackupCopy.objects.filter(id=copy.id, state=CopyState.WRITING).update(error=str(error))
        return False
    with borrowed():
        BackupCopy.objects.filter(id=copy.id, state=CopyState.WRITING).delete()
    return True


def leftovers(job: Job) -> list[BackupCopy]:
    """What earlier claims of this job began and never finished."""
    rows = BackupCopy.objects.filter(backup_id=job.id, state=CopyState.WRITING).exclude(claim_id=job.claim_id)
    return list(rows.select_related("storage"))


def sweep_unfinished() -> int:
    """Clear away what no running claim is writing any more. An upkeep duty."""
    writing = QueuedJob.objects.filter(status="active", claim_id=OuterRef("claim_id"))
    orphans = BackupCopy.objects.filter(~Exists(writing), state=CopyState.WRITING, is_first=True)
    return sum(clear(copy) for copy in orphans.select_related("storage"))
