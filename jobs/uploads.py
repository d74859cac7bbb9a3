"""Files that users bring to restore from: taken in as a stream, looked into, kept for a day.

A row is there before the first byte is, with what it takes to clear the object away. `keep_until` says when
the sweep may take it: of a finished upload it is the end of its time, of one under way a lease that whoever
receives it renews, of one that is being deleted the time of the next attempt.
"""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now
from django.db.utils import Error
from django.utils import timezone

from jobs.crypto import CannotDecrypt
from jobs.models import QueuedJob, Storage, Upload
from jobs.models.storage import CopyState
from jobs.pgtools.errors import PgToolsError
from jobs.queue.connections import is_outage
from jobs.services import NotFound, ServiceError, record, visible_to
from jobs.storage.base import Store, StoreError
from jobs.storage.keys import upload_key
from jobs.stores import default_storage, store_for
from jobs.upload_limits import CutOff, InUse, NoDump, UploadRefused, clean_name, refuse_empty, refuse_large
from jobs.waiting import TookTooLong, within

KEEP = timedelta(hours=24)
LEASE = timedelta(hours=1)
RENEW_SECONDS = 300.0
RETRY = timedelta(hours=1)  # of a deletion that did not work
# With a store or a database that is away: somebody waits, and holds a thread of the site.
PATIENCE_SECONDS = 60.0
CLEARING_SECONDS = 5.0
LOOK_SECONDS = 30.0

log = logging.getLogger(__name__)


def receive(owner: User, name: str, chunks: Iterator[bytes], expected: int | None = None) -> Upload:
    """Store what `chunks` yields and keep it for 24 h; the finished row.

    `expected`: how many bytes there are to be, None where nobody says. No database connection is held while
    waiting for bytes. Raises `UploadRefused` and `StoreError`, having removed what was stored.
    """
    name = clean_name(name)
    if expected is not None:
        refuse_large(expected)
        refuse_empty(expected)
    with _briefly():
        storage = default_storage()
    store = store_for(storage, retry_seconds=PATIENCE_SECONDS)
    store.prepare()
    with _briefly():
        upload = _begin(owner, name, storage)
    try:
        size, sha256 = _store(store, upload, chunks, expected)
        _extend(upload, sha256=sha256)
        _finish(upload, _facts(store, upload, size), owner)
    except BaseException:
        _abandon(upload)
        raise
    upload.refresh_from_db()
    return upload


def keep(upload: Upload, *, by: User) -> None:
    """Until somebody deletes it. Raises `NotFound`, or `ServiceError` for one that is not complete."""
    with transaction.atomic():
        row = _found(upload.id, by)
        if row.state != CopyState.GOOD:
            raise ServiceError(f"{row.name} is {row.state}: only a complete upload can be kept.")
        Upload.objects.filter(id=row.id).update(keep_until=None)
        record(by, "keep", row)


def delete(upload: Upload, *, by: User) -> None:
    """Remove the object, then the row. Raises `NotFound`, `InUse`, or `ServiceError` when the storage does
    not delete: then the sweep goes on trying."""
    with transaction.atomic():
        row = _found(upload.id, by)
        if is_wanted(row.id):
            raise InUse(f"{row.name}: a restore from it waits or runs. Cancel that first.")
        Upload.objects.filter(id=row.id).update(state=CopyState.DELETING, keep_until=Now() + RETRY)
        record(by, "delete", row, storage_key=row.storage_key)
    try:
        _clear(row)
    except (StoreError, CannotDecrypt) as error:
        raise ServiceError(f"It is still in {row.storage.name!r}: {error} pgbr goes on trying.") from error


def sweep() -> int:
    """Delete what is past its time and what nobody receives any more. An upkeep duty; how many are gone."""
    due = Upload.objects.filter(keep_until__lt=Now()).select_related("storage").order_by("keep_until")
    count, away = 0, set()
    for upload in list(due):
        if upload.storage_id in away or not _condemn(upload.id):
            continue
        try:
            _clear(upload)
        except (StoreError, CannotDecrypt) as error:
            away.add(upload.storage_id)
            log.warning("could not clear away the upload %s: %s", upload.storage_key, error)
        else:
            count += 1
    return count


def is_wanted(upload_id: UUID) -> bool:
    """Does a restore from it wait or run?"""
    unfinished = QueuedJob.objects.filter(status__in=["pending", "active"])
    return unfinished.filter(payload__upload_id=str(upload_id)).exists()


@contextmanager
def _briefly() -> Iterator[None]:
    """The connection goes back at once: the next bytes may be long in coming."""
    try:
        yield
    finally:
        if not connection.in_atomic_block:
            connection.close()


def _begin(owner: User, name: str, storage: Storage) -> Upload:
    upload_id = uuid.uuid4()
    return Upload.objects.create(
        id=upload_id,
        user_id=owner.pk,
        name=name,
        storage=storage,
        storage_key=upload_key(storage.prefix, name, timezone.now(), upload_id),
        keep_until=Now() + LEASE,
    )


def _store(store: Store, upload: Upload, chunks: Iterator[bytes], expected: int | None) -> tuple[int, str]:
    """Bytes and SHA-256 of what was stored."""
    digest, renewed = hashlib.sha256(), time.monotonic()
    with store.writer(
        upload.storage_key, size_hint=expected, on_token=partial(_remember_token, upload)
    ) as writer:
        for chunk in chunks:
            refuse_large(writer.size + len(chunk))
            digest.update(chunk)
            writer.write(chunk)
            if time.monotonic() - renewed > RENEW_SECONDS:
                _extend(upload, size=writer.size)
                renewed = time.monotonic()
        if expected is not None and writer.size != expected:
            raise CutOff(
                f"Only {writer.size} of {expected} bytes arrived: the connection broke. Upload it again."
            )
        refuse_empty(writer.size)
        _extend(upload, size=writer.size)
        writer.commit()
    return writer.size, digest.hexdigest()


def _remember_token(upload: Upload, token: str) -> None:
    upload.upload_token = token
    with _briefly():
        Upload.objects.filter(id=upload.id).update(upload_token=token)


def _extend(upload: Upload, **values: Any) -> None:
    """Renew the lease. Raises `UploadRefused` once the row is somebody else's to remove."""
    try:
        with _briefly():
            mine = Upload.objects.filter(id=upload.id, state=CopyState.WRITING)
            alive = mine.update(keep_until=Now() + LEASE, **values)
    except Error as error:
        if not is_outage(error):
            raise
        log.warning("the database is away while %s is uploaded: %s", upload.storage_key, error)
        return
    if not alive:
        raise UploadRefused(f"{upload.name} was deleted while it was being uploaded.")


def _facts(store: Store, upload: Upload, size: int) -> dict[str, Any]:
    """What is in it, as kept in the row. Raises `NoDump`.

    Whoever sent it waits, and of a compressed tar the list may come last: then the restore will look.
    """
    from jobs.pgtools.archive.contents import inspect

    try:
        with within(LOOK_SECONDS, "Looking into it") as control:
            contents = inspect(partial(store.read, upload.storage_key), size, stop=control.stopped)
    except TookTooLong:
        return {"format": "", "in_words": "a large file whose contents were not looked at yet"}
    except PgToolsError as error:
        raise NoDump(str(error)) from error
    return {
        "format": contents.format,
        "codec": contents.codec,
        "in_words": contents.in_words(),
        "server_major": contents.server_major,
    }


def _finish(upload: Upload, facts: dict[str, Any], owner: User) -> None:
    """May be tried again after an answer that got lost: it says the same twice."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with _briefly(), transaction.atomic():
                return _mark_good(upload, facts, owner)
        except Error as error:
            if not is_outage(error) or time.monotonic() > until:
                raise
        time.sleep(1)


def _mark_good(upload: Upload, facts: dict[str, Any], owner: User) -> None:
    rows = Upload.objects.filter(id=upload.id, state__in=[CopyState.WRITING, CopyState.GOOD])
    finished = {"state": CopyState.GOOD, "upload_token": "", "facts": facts, "completed_at": Now()}
    if not rows.update(keep_until=Now() + KEEP, **finished):
        raise UploadRefused(f"{upload.name} was deleted while it was being uploaded.")
    record(owner, "upload", upload, storage_key=upload.storage_key)


def _abandon(upload: Upload) -> None:
    """Remove what a failed upload has left. Where that does not work the sweep does it later.

    Asks the database first: whatever made somebody believe that it failed, a good one stays.
    """
    try:
        with _briefly():
            if Upload.objects.filter(id=upload.id, state=CopyState.GOOD).exists():
                return
            Upload.objects.filter(id=upload.id).update(state=CopyState.DELETING)
        _clear(upload)
    except (StoreError, CannotDecrypt, Error) as error:
        log.warning("could not clear away the upload %s: %s", upload.storage_key, error)


def _condemn(upload_id: UUID) -> bool:
    """Mark one that is past its time. Whoever queues a restore from it takes the same lock."""
    with transaction.atomic():
        rows = Upload.objects.filter(id=upload_id, keep_until__lt=Now())
        if rows.select_for_update(skip_locked=True).first() is None or is_wanted(upload_id):
            return False
        rows.update(state=CopyState.DELETING)
    return True


def _clear(upload: Upload) -> None:
    """Remove object and row. Raises `StoreError`, `CannotDecrypt`: then the sweep comes back to it."""
    try:
        _remove(upload.storage, upload.storage_key, upload.upload_token)
    except (StoreError, CannotDecrypt):
        with _briefly():
            Upload.objects.filter(id=upload.id).update(keep_until=Now() + RETRY)
        raise
    with _briefly():
        Upload.objects.filter(id=upload.id).delete()


def _remove(storage: Storage, key: str, token: str) -> None:
    store = store_for(storage, retry_seconds=CLEARING_SECONDS)
    store.discard(key, token)
    store.discard_all(key)
    store.delete(key)


def _found(upload_id: UUID, by: User) -> Upload:
    """The row, locked."""
    rows = Upload.objects.select_for_update(of=("self",)).select_related("storage")
    row = visible_to(by, rows.filter(id=upload_id)).first()
    if row is None:
        raise NotFound(f"There is no upload {upload_id}.")
    return row
