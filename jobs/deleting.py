"""Deleting stored copies: marked under a lock, removed from their storage afterwards, tried until it works.

Whoever marks a copy has to know, while the rows are locked, that nobody needs it. From then on nobody reads
from it any more, and its removal is tried as often as it takes. Only one that its storage refuses to remove,
or locks, and that is whole, becomes good again; `next_attempt_at` says when it may be marked anew.

Locks are taken in one order: backups before copies, older ones before newer ones. Whoever queues a restore
takes the backup's lock, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from jobs import ending
from jobs.backoff import pause_after
from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob, QueuedJob
from jobs.models.base import Queue
from jobs.models.history import Status
from jobs.models.storage import CopyState
from jobs.storage.base import FOREVER, Store, StoreError
from jobs.storage.keys import globals_key, manifest_key
from jobs.stores import store_for

LEASE = timedelta(minutes=10)  # for one attempt
WRITERS_NOTICE = timedelta(minutes=3)  # longer than the lease of `jobs.copying`
RETRY_FIRST, RETRY_LONGEST = 60.0, 6 * 3600.0
PATIENCE_SECONDS = 5.0  # with a store that is away
ROUND_SECONDS = 120.0  # then other duties have their turn
LOOK_AGAIN = timedelta(days=1)  # whether a legal hold is still there
ENDED = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)

log = logging.getLogger(__name__)


def due() -> Q:
    """Copies whose removal may be tried now."""
    return Q(next_attempt_at=None) | Q(next_attempt_at__lte=Now())


def unlocked() -> Q:
    """Copies that no object lock with a date protects, as far as known."""
    return Q(locked_until=None) | Q(locked_until__lte=Now()) | Q(locked_until__gte=FOREVER)


def moment(prefix: str = "") -> Coalesce:
    """When a backup was due, else started: what retention goes by."""
    return Coalesce(f"{prefix}slot", f"{prefix}started_at", f"{prefix}created_at")


# Marking: in a transaction -----------------------------------------------------------------------


def locked(rows: QuerySet[BackupJob], *, wait: bool = True) -> list[BackupJob]:
    """What changed while this waited, so that it is not asked for any more, is left out."""
    return list(in_order(rows, wait=wait).defer("log", "manifest"))


def in_order(rows: QuerySet[BackupJob], *, wait: bool = True) -> QuerySet[BackupJob]:
    """To be locked by being read, the oldest first."""
    ordered = rows.annotate(moment=moment()).order_by("moment", "id")
    return ordered.select_for_update(of=("self",), no_key=True, skip_locked=not wait)


def wanted_by_restores(backup_ids: Collection[UUID]) -> set[UUID]:
    """Those from which a restore waits or runs. To be asked while they are locked."""
    unfinished = QueuedJob.objects.filter(queue=Queue.RESTORE, status__in=["pending", "active"])
    found = unfinished.filter(payload__backup_id__in=[str(each) for each in backup_ids])
    wanted = {str(each) for each in found.values_list("payload__backup_id", flat=True)}
    return {each for each in backup_ids if str(each) in wanted}


def mark_surplus(
    schedule_id: UUID, storage_id: UUID, backup_ids: Collection[UUID], *, given_up: bool = False
) -> list[UUID]:
    """Mark a storage's copies of these backups of a schedule; the ids of those that were.

    Left out is what is pinned, in the trash, not good, not due, wanted by a restore, or not older than a good
    copy there that stays; and what a tightened policy gave up, or with `given_up` all else.
    """
    rows = BackupJob.objects.filter(schedule_id=schedule_id, status=Status.COMPLETED, trashed_at=None)
    backups = locked(rows.filter(id__in=backup_ids, pinned=False))
    waited = Q(delete_after__lte=Now()) if given_up else Q(delete_after=None)
    copies = _good(storage_id, [each.id for each in backups]).filter(due(), waited)
    marked = {copy.backup_id: copy.id for copy in copies.select_for_update(no_key=True)}
    stays = _newest_that_stays(rows, storage_id, set(marked))
    if stays is None:
        return []
    wanted = wanted_by_restores(marked)
    going = [marked[each.id] for each in backups if each.id in marked.keys() - wanted and _age(each) < stays]
    _mark(BackupCopy.objects.filter(id__in=going))
    return going


def mark_all(backup: BackupJob) -> bool:
    """Give up a locked backup as a whole; whether its history is gone, as there is nothing stored of it."""
    _mark(backup.copies.filter(unlocked()))
    return forget_if_empty(backup.id)


def keep(copies: QuerySet[BackupCopy]) -> None:
    """Good ones that were given up, or could not be deleted, are wanted after all."""
    tried = {"error": None, "attempts": 0, "next_attempt_at": None}
    copies.filter(state=CopyState.GOOD).update(**tried, delete_after=None)


def forget_if_empty(backup_id: UUID) -> bool:
    """Delete the history of a locked backup of which nothing is stored (any more); whether that was so."""
    copies = BackupCopy.objects.filter(backup_id=backup_id)
    # What never became a copy has nothing left to be made from.
    unmade = Q(state__in=[CopyState.WRITING, CopyState.FAILED], completed_at=None, is_first=False)
    if copies.exclude(unmade).exists():
        return False
    if copies.exists():
        _mark(copies)
        return False
    return bool(BackupJob.objects.filter(id=backup_id, status__in=ENDED).delete()[0])


def _mark(copies: QuerySet[BackupCopy]) -> None:
    """One that somebody may be writing is removed once they must have noticed, or a late write would stay."""
    written = Q(state__in=[CopyState.WRITING, CopyState.FAILED], claim_id__isnull=False)
    columns = {"state": CopyState.DELETING, "delete_after": None}
    copies.filter(written).update(**columns, attempts=0, next_attempt_at=Now() + WRITERS_NOTICE)
    # One that was refused before has its attempts: the pauses go on growing.
    copies.filter(state=CopyState.GOOD).update(**columns, next_attempt_at=Now())
    copies.exclude(state=CopyState.DELETING).update(**columns, attempts=0, next_attempt_at=Now())


def _good(storage_id: UUID, backup_ids: Collection[UUID]) -> QuerySet[BackupCopy]:
    return BackupCopy.objects.filter(
        storage_id=storage_id, backup_id__in=backup_ids, state=CopyState.GOOD
    ).order_by("backup_id")


def _newest_that_stays(
    rows: QuerySet[BackupJob], storage_id: UUID, but: set[UUID]
) -> tuple[datetime, UUID] | None:
    """The newest of the others that has a good copy there, locked so that it keeps it."""
    stays = {"copies__storage_id": storage_id, "copies__state": CopyState.GOOD, "copies__delete_after": None}
    newest = rows.filter(**stays).exclude(id__in=but).annotate(moment=moment()).order_by("-moment", "-id")
    for backup in locked(rows.filter(id__in=list(newest.values_list("id", flat=True)[:1]))):
        good = _good(storage_id, [backup.id]).filter(delete_after=None)
        if good.select_for_update(no_key=True).exists():
            return _age(backup)
    return None


def _age(backup: BackupJob) -> tuple[datetime, UUID]:
    return backup.slot or backup.started_at or backup.created_at, backup.id


# Removing: outside of any transaction ------------------------------------------------------------


def retry() -> int:
    """Remove what is marked and due; how many copies are gone. An upkeep duty."""
    return work_off(BackupCopy.objects.all())


def work_off(
    copies: QuerySet[BackupCopy], *, seconds: float = ROUND_SECONDS, away: set[UUID] | None = None
) -> int:
    """Remove those of the copies that are marked and due, for so long; how many are gone. A storage that is
    `away` is left alone until the next round, and so costs one attempt."""
    gone, until = 0, time.monotonic() + seconds
    away = set() if away is None else away
    while time.monotonic() < until and not ending.has_begun():
        copy = _lease(copies.exclude(storage_id__in=away))
        if copy is None:
            break
        try:
            gone += _removed(copy)
        except (StoreError, CannotDecrypt) as error:
            if getattr(error, "transient", False):
                away.add(copy.storage_id)
    return gone


@transaction.atomic
def _lease(copies: QuerySet[BackupCopy]) -> BackupCopy | None:
    """One that is due, so that nobody else tries it meanwhile."""
    marked = copies.filter(due(), state=CopyState.DELETING)
    oldest = marked.order_by("next_attempt_at").select_related("storage")
    copy = oldest.select_for_update(of=("self",), skip_locked=True, no_key=True).first()
    if copy is not None:
        copy.attempts += 1
        BackupCopy.objects.filter(id=copy.id).update(
            attempts=F("attempts") + 1, next_attempt_at=Now() + LEASE
        )
    return copy


def _removed(copy: BackupCopy) -> bool:
    """One attempt; False: it is locked. Raises `StoreError`, `CannotDecrypt`, having planned the next one."""
    _let_go()
    try:
        store = store_for(copy.storage, retry_seconds=PATIENCE_SECONDS)
        until = store.locked_until(copy.storage_key)
        if until is None:
            if not _is_ours(copy):
                return False
            _remove_objects(store, copy)
    except (StoreError, CannotDecrypt) as error:
        log.warning("could not delete %s: %s", copy.storage_key, error, extra={"job": copy.backup_id})
        pause = pause_after(copy.attempts, first=RETRY_FIRST, longest=RETRY_LONGEST)
        again = timezone.now() + timedelta(seconds=pause)
        _put_off(copy, again, error=str(error))
        raise
    if until is None:
        log.info("deleted %s from %s", copy.storage_key, store.name, extra={"job": copy.backup_id})
        _forget(copy)
        return True
    again = timezone.now() + LOOK_AGAIN if until == FOREVER else until
    _put_off(copy, again, error=None, locked_until=until, attempts=0)
    return False


def _is_ours(copy: BackupCopy) -> bool:
    """Not if this process stood still for longer than its lease: by now the copy may be kept after all."""
    ours = BackupCopy.objects.filter(id=copy.id, state=CopyState.DELETING, attempts=copy.attempts).exists()
    _let_go()
    return ours


def _let_go() -> None:
    """Nobody holds a connection while a store takes its time."""
    if not connection.in_atomic_block:
        connection.close()


def _remove_objects(store: Store, copy: BackupCopy) -> None:
    """The manifest goes last: while it is there, what is left can still be told."""
    store.discard(copy.storage_key, copy.upload_token)
    for key in (copy.storage_key, globals_key(copy.storage_key), manifest_key(copy.storage_key)):
        store.delete(key)


def _put_off(copy: BackupCopy, until: datetime, **columns: Any) -> None:
    state = CopyState.GOOD if _is_whole(copy) else CopyState.DELETING
    marked = BackupCopy.objects.filter(id=copy.id, state=CopyState.DELETING)
    marked.update(state=state, next_attempt_at=until, **columns)


def _is_whole(copy: BackupCopy) -> bool:
    """Is it still there, so that it can be restored from? A storage that never deletes keeps it."""
    if not copy.is_first and copy.completed_at is None:
        return False
    try:
        return store_for(copy.storage, retry_seconds=0).stat(copy.storage_key).size == copy.size
    except (StoreError, CannotDecrypt):
        return False


@transaction.atomic
def _forget(copy: BackupCopy) -> None:
    locked(BackupJob.objects.filter(id=copy.backup_id))
    BackupCopy.objects.filter(id=copy.id, state=CopyState.DELETING).delete()
    forget_if_empty(copy.backup_id)
