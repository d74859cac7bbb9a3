"""An artifact, streamed from its storage to whoever owns it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import UUID

from django.contrib.admin.views.decorators import staff_member_required
from django.contrib.auth.models import User
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from dashboard import ranges
from jobs.artifacts import good_copies, opened
from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob
from jobs.services import NotFound, visible_to
from jobs.storage.base import ObjectMissing, Store, StoreError
from jobs.storage.keys import safe_name

log = logging.getLogger(__name__)


@require_safe
@staff_member_required
def download(request: HttpRequest, backup_id: UUID) -> HttpResponseBase:
    """The stored dump. 404 for others' and for what is not stored, 206 or 416 for a Range, 503 with the
    reason when the storage does not deliver."""
    assert isinstance(request.user, User)  # noqa: S101
    backup = visible_to(request.user, BackupJob.objects.filter(pk=backup_id)).first()
    if backup is None:
        raise Http404(f"There is no backup {backup_id}.")
    try:
        response = _from_any_copy(request, backup)
    except NotFound as error:
        raise Http404(str(error)) from error
    except (StoreError, CannotDecrypt) as error:
        gone = isinstance(error, ObjectMissing)
        return render(request, "unavailable.html", {"reason": str(error)}, status=404 if gone else 503)
    patch_cache_control(response, private=True, no_cache=True)
    return response


def _from_any_copy(request: HttpRequest, backup: BackupJob) -> HttpResponseBase:
    """From the first copy that delivers. Raises `NotFound`, and the error of the last one."""
    found = good_copies(backup)
    for copy in found[:-1]:
        try:
            return _answer(request, backup, opened(copy), copy)
        except (StoreError, CannotDecrypt) as error:
            log.warning("the copy in %s is passed over: %s", copy.storage.name, error)
    return _answer(request, backup, opened(found[-1]), found[-1])


def _answer(request: HttpRequest, backup: BackupJob, store: Store, copy: BackupCopy) -> HttpResponseBase:
    size = store.stat(copy.storage_key).size
    if size != copy.size:
        raise StoreError(
            f"{copy.storage.name}, {copy.storage_key}: {size} bytes lie there, {copy.size} were stored. "
            "The object was changed or cut short; do not rely on it."
        )
    headers = {"Accept-Ranges": "bytes", "ETag": f'"{copy.sha256}"'}
    try:
        wanted = _range(request, headers["ETag"], size)
    except ranges.Unsatisfiable:
        return HttpResponse(status=416, headers=headers | {"Content-Range": f"bytes */{size}"})
    start, end = wanted or (0, size)
    headers |= {
        "Content-Length": str(end - start),
        "Content-Disposition": content_disposition_header(True, filename(backup, copy)) or "attachment",
    }
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 200 if wanted is None else 206
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers, content_type="application/octet-stream")
    return _stream(store.read(copy.storage_key, start, end), status, headers)


def _stream(chunks: Iterator[bytes], status: int, headers: dict[str, str]) -> StreamingHttpResponse:
    """The first chunk is fetched before anything is promised."""
    first = next(chunks, b"")
    if not connection.in_atomic_block:
        connection.close()  # a download of hours must not hold one
    return StreamingHttpResponse(
        _rest(first, chunks), status=status, headers=headers, content_type="application/octet-stream"
    )


def _rest(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def _range(request: HttpRequest, etag: str, size: int) -> tuple[int, int] | None:
    """A range counts only while the object is the one the client began with (If-Range)."""
    header = request.headers.get("Range", "")
    if not header or request.headers.get("If-Range", etag) != etag:
        return None
    return ranges.parse(header, size)


def filename(backup: BackupJob, copy: BackupCopy) -> str:
    """ "shop_20260102T030405Z.dump": the database, the start in UTC, and what it is."""
    moment = backup.started_at or backup.created_at
    stored = copy.storage_key.rsplit("/", 1)[-1]
    extension = stored.rsplit("_", 1)[-1].partition(".")[2] or "dump"
    return f"{safe_name(backup.database_name)}_{moment:%Y%m%dT%H%M%SZ}.{extension}"
