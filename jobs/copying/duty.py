"""The duty: take the next copy, make it, and write down what has come of it."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now
from django.db.utils import Error

from jobs import ending
from jobs.backoff import pause_after
from jobs.copying.lease import UNFINISHED, Lease, Lost, briefly, take
from jobs.copying.places import Foreign, Place, one_place, others
from jobs.copying.sources import PATIENCE_SECONDS, Record, sources
from jobs.copying.transfer import NoSource, Transfer
from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy
from jobs.models.storage import CopyState
from jobs.storage.base import Stopped, StoreError
from jobs.stores import store_for

ROUND_SECONDS = 15.0  # then the other duties of this pace have their turn
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 3600.0
DAMAGED_PAUSE = timedelta(days=1)  # with nothing to replace it by: each look may read all that lies there

log = logging.getLogger(__name__)


def copy_due() -> int:
    """Make the copies that are due, one after the other; how many were made. An upkeep duty."""
    until, made = time.monotonic() + ROUND_SECONDS, 0
    while not ending.has_begun() and time.monotonic() < until:
        lease = take()
        if lease is None:
            break
        made += _copy(lease)
    return made


def _copy(lease: Lease) -> bool:
    transfer: Transfer | None = None
    try:
        with briefly():
            transfer = _ordered(lease)
        with lease.kept():
            transfer.run()
            lease.write(**_good(transfer))
    except (Lost, Stopped) as why:
        _stopped(lease, transfer, why)
    except (StoreError, CannotDecrypt) as error:
        _failed(lease, error)
    except Error:
        raise
    except Exception as error:
        log.exception("copy %s failed by a defect", lease.copy_id)
        _failed(lease, RuntimeError(f"A defect in pgbr ({type(error).__name__}: {error}). Please report it."))
    else:
        log.info("%s is copied to %s", transfer.key, transfer.store.name)
        return True
    return False


def _ordered(lease: Lease) -> Transfer:
    copy = lease.row.select_related("backup", "storage").defer("backup__log").first()
    if copy is None:
        raise Lost
    backup = copy.backup
    found = sources(backup)
    store = store_for(copy.storage, retry_seconds=PATIENCE_SECONDS)
    place = Place(copy.storage, copy.storage_key)
    for source in found:
        if place.is_surely(held := Place(source.storage, source.key)):
            raise one_place(store.name, held)
    return Transfer(
        lease,
        store,
        copy.storage_key,
        copy.upload_token,
        Record(backup.size or 0, backup.sha256 or ""),
        backup.manifest,
        found,
        copy.has_globals,
        [] if copy.is_first or copy.completed_at else others(copy),
    )


def _good(transfer: Transfer) -> dict[str, object]:
    return {
        "state": CopyState.GOOD,
        "claim_id": None,
        "upload_token": "",
        "size": transfer.record.size,
        "sha256": transfer.record.sha256,
        "has_globals": transfer.has_globals,
        "error": None,
        "attempts": 0,
        "next_attempt_at": None,
        "verified_at": Now(),
        "completed_at": Now(),
    }


def _failed(lease: Lease, error: Exception) -> None:
    log.warning("a copy failed: %s", error, extra={"copy": lease.copy_id})
    with briefly(), transaction.atomic():
        copy = lease.row.select_for_update(of=("self",)).first()
        if copy is None:
            return
        pause = _pause(copy, error)
        lease.row.update(
            state=CopyState.FAILED,
            claim_id=None,
            attempts=F("attempts") + 1,
            error=str(error),
            next_attempt_at=Now() + pause,
        )
        if not isinstance(error, NoSource | Foreign):
            _postpone(copy, pause, str(error))


def _pause(copy: BackupCopy, error: Exception) -> timedelta:
    if isinstance(error, NoSource) and (copy.is_first or copy.completed_at):
        return DAMAGED_PAUSE
    return timedelta(seconds=pause_after(copy.attempts + 1, first=FIRST_PAUSE, longest=LONGEST_PAUSE))


def _postpone(failed: BackupCopy, pause: timedelta, error: str) -> None:
    """The storage is in trouble: the other copies that wait for it do not try, too, one after the other."""
    waiting = BackupCopy.objects.filter(
        storage_id=failed.storage_id, state__in=UNFINISHED, claim_id=None, next_attempt_at__isnull=False
    )
    ids = list(
        waiting.select_for_update(skip_locked=True)
        .order_by("id")
        .exclude(id=failed.id)
        .values_list("id", flat=True)
    )
    BackupCopy.objects.filter(id__in=ids).update(
        next_attempt_at=Greatest("next_attempt_at", Now() + pause), error=error
    )


def _stopped(lease: Lease, transfer: Transfer | None, why: Exception) -> None:
    """Nothing is left of a copy that nobody wants any more; one that another worker has taken over stays."""
    if isinstance(why, Stopped) and not lease.lost:
        with briefly():
            lease.row.update(claim_id=None, next_attempt_at=Now())
        return
    log.info("copy %s is not wanted any more, or is another worker's", lease.copy_id)
    with briefly():
        found = BackupCopy.objects.filter(id=lease.copy_id).first()
        wanted = found is not None and found.state != CopyState.DELETING and found.claim_id != lease.claim_id
    if wanted or transfer is None:
        return
    try:
        transfer.unmake()
    except StoreError as error:
        log.warning("could not clear away a copy: %s", error)
        return
    with briefly():
        lease.claimed.filter(state__in=UNFINISHED).delete()
