"""When a storage is swept, and by whom."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now
from django.db.utils import Error

from jobs import deleting, ending
from jobs.copying.lease import briefly
from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, Storage
from jobs.models.storage import CopyState
from jobs.queue.rows import storable
from jobs.storage.base import ObjectInfo, Stopped, Store, StoreError
from jobs.storage.keys import folder_of
from jobs.stores import store_for
from jobs.sweeping.lost import look_again, look_for_lost, with_lost
from jobs.sweeping.report import Swept
from jobs.sweeping.strays import Strays

EVERY, AFTER_TROUBLE = timedelta(days=1), timedelta(hours=1)
PAGE = 500
LONGEST_SECONDS = 3600.0  # of a listing: some never end

log = logging.getLogger(__name__)


def sweep_due() -> int:
    """Sweep each storage once a day; how many were. What is lost is looked at each time. An upkeep duty."""
    due = Q(swept_at=None) | Q(swept_at__lte=Now() - EVERY)
    swept = 0
    for storage in list(Storage.objects.filter(due).order_by("swept_at")):
        if Storage.objects.filter(due, id=storage.id).update(swept_at=Now()):
            sweep(storage)
            swept += 1
    for storage in list(Storage.objects.filter(id__in=with_lost())):
        try:
            look_again(storage, _store(storage), Swept())
        except (StoreError, CannotDecrypt) as error:
            log.info("what is lost in %s is not there yet: %s", storage.name, error)
    return swept


def want_sweep(storage: Storage) -> None:
    """At the next turn of the duty."""
    Storage.objects.filter(id=storage.id).update(swept_at=None)


def sweep(storage: Storage) -> Swept:
    """Compare, and keep the report in the row. A storage that is away is looked at again in an hour. Its
    trouble is its own."""
    swept = Swept()
    try:
        _sweep(storage, _store(storage), swept)
    except (StoreError, CannotDecrypt) as error:
        swept.error = str(error)
        if BackupCopy.objects.filter(storage=storage).exists():
            log.warning("the sweep of %s ended early: %s", storage.name, error)
    except Error:
        raise
    except Exception as error:
        log.exception("the sweep of %s failed by a defect", storage.name)
        swept.error = f"A defect in pgbr ({type(error).__name__}). Please report it."
    with briefly():
        next_one = Now() - (EVERY - AFTER_TROUBLE) if swept.error else Now()
        Storage.objects.filter(id=storage.id).update(swept=swept.as_json(), swept_at=next_one)
    return swept


def _sweep(storage: Storage, store: Store, swept: Swept) -> None:
    look_again(storage, store, swept)
    seen = set[UUID]()
    until = time.monotonic() + LONGEST_SECONDS
    strays = Strays(storage, store, swept, until)
    try:
        for page in _pages(store, folder_of(storage.prefix), until, swept):
            strays.take(page)
            with briefly():
                seen |= _intact(storage, page)
    except StoreError as error:
        if error.transient:
            raise
        swept.error = f"What lies there cannot be listed, so only known copies were looked at. {error}"
    look_for_lost(storage, store, seen, swept)


def _store(storage: Storage) -> Store:
    return store_for(storage, retry_seconds=deleting.PATIENCE_SECONDS)


def _pages(store: Store, prefix: str, until: float, swept: Swept) -> Iterator[list[ObjectInfo]]:
    """Without what no row could speak of: a name that is no UTF-8."""
    infos = store.list(prefix)
    while page := list(islice(infos, PAGE)):
        if ending.has_begun():
            raise Stopped("The worker was stopped meanwhile.", transient=True)
        if time.monotonic() > until:
            raise StoreError(f"The listing did not end within {LONGEST_SECONDS / 60:.0f} minutes.")
        yield [info for info in page if _has_name(info, swept)]


def _has_name(info: ObjectInfo, swept: Swept) -> bool:
    if storable(info.key) == info.key:
        return True
    swept.foreign.count_in(info.size)
    return False


def _intact(storage: Storage, page: list[ObjectInfo]) -> set[UUID]:
    """Good copies whose object lies there with its size. Where the listing takes hours the object may go
    meanwhile; the next sweep notices."""
    sizes = {info.key: info.size for info in page}
    good = BackupCopy.objects.filter(storage=storage, state=CopyState.GOOD, storage_key__in=sizes)
    rows = good.values_list("id", "storage_key", "size")
    return {copy_id for copy_id, key, size in rows if sizes[key] == size}
