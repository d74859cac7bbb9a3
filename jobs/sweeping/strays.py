"""Objects that no row speaks of.

One is deleted only when its manifest says that this installation made it for a job that its database has
known, when it is over a day old and not locked, and when the backup, if there still is one, has a good copy
elsewhere. A manifest whose job was never heard of may mean that pgbr's own database was put back to an older
state: then this may be the only trace of a good backup, and it is left alone.
"""

from __future__ import annotations

import json
import re
import time
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from jobs.copying.lease import briefly
from jobs.models import BackupCopy, BackupJob, QueuedJob, Storage, TimelineLine, Upload
from jobs.models.history import Status
from jobs.models.instance import instance_key
from jobs.models.storage import CopyState, StorageKind
from jobs.storage.base import PROBE_NAME, ObjectInfo, ObjectMissing, Store, StoreError
from jobs.storage.keys import globals_key, manifest_key, moved_key
from jobs.sweeping.report import Swept

OLD = timedelta(days=1)
MOST_LOOKED_AT = 1000  # in one sweep: each costs a few requests
MOST_REMEMBERED = 100_000  # beyond that each object counts as an artifact
LARGEST_MANIFEST = 4 * 1024 * 1024
# As `jobs.storage.keys` makes them.
OURS = re.compile(
    r"\d{8}T\d{6}Z_[A-Za-z0-9._-]+_(?:[0-9a-f]{8}-[0-9a-f]{4}\.(?:dump|sql(?:\.gz|\.zst)?|tar)|[0-9a-f]{32}\.upload)"
)


def artifact_key(key: str) -> str:
    """Of the artifact that an object is, or lies beside."""
    for suffix in (manifest_key(""), globals_key("")):
        key = key.removesuffix(suffix)
    return key


class Strays:
    """Takes a listing page by page; looks at each artifact once, however its three objects come, `until` the
    time is over."""

    def __init__(self, storage: Storage, store: Store, swept: Swept, until: float) -> None:
        self._storage = storage
        self._store = store
        self._swept = swept
        self._until = until
        self._done: set[str] = set()
        with briefly():
            self._instance = str(instance_key())

    def take(self, infos: list[ObjectInfo]) -> None:
        """Raises `StoreError` when the store is away."""
        by_key = {artifact_key(info.key) for info in infos}
        with briefly():
            known = _known(by_key, storage=self._storage)
        for info in infos:
            key = artifact_key(info.key)
            if key in known:
                self._swept.known.count_in(info.size)
            elif not OURS.fullmatch(key.rsplit("/", 1)[-1]):
                if not key.endswith(PROBE_NAME):
                    self._swept.foreign.count_in(info.size)
            elif key not in self._done:
                if len(self._done) < MOST_REMEMBERED:
                    self._done.add(key)
                self._look(key, info)

    def _look(self, key: str, info: ObjectInfo) -> None:
        try:
            why = self._why_not(key) if self._has_time() else "not looked at this time"
            if not why:
                for each in (key, globals_key(key), manifest_key(key)):
                    self._store.delete(each)
        except StoreError as error:
            if error.transient:
                raise
            why = str(error)
        if why:
            self._swept.strays.add(key, info.size, why)
        else:
            self._swept.deleted.add(key, info.size, "made here, and no row speaks of it any more")

    def _has_time(self) -> bool:
        return len(self._done) <= MOST_LOOKED_AT and time.monotonic() < self._until

    def _why_not(self, key: str) -> str:
        """Why it must stay, in words; "" when nobody can need it."""
        manifest, written = self._manifest(key)
        if manifest is None or written is None:
            return "there is no manifest that says who made it"
        if manifest.get("instance") != self._instance:
            return "another installation of pgbr made it"
        if not self._is_its_own(manifest, key):
            return "its manifest speaks of another object"
        if timezone.now() - max(written, self._modified(key) or written) < OLD:
            return "it is less than a day old"
        with briefly():
            reason = _needed(manifest, key)
        if reason:
            return reason
        return "it is locked" if self._store.locked_until(key) else ""

    def _manifest(self, key: str) -> tuple[dict[str, Any] | None, datetime | None]:
        try:
            info = self._store.stat(manifest_key(key))
            content = json.loads(self._small(manifest_key(key)))
        except (ObjectMissing, ValueError, RecursionError):
            return None, None
        return (content, info.modified) if isinstance(content, dict) else (None, None)

    def _small(self, key: str) -> bytes:
        """Its content, whatever its store has said of its size. Raises `ValueError` for a large one."""
        content = bytearray()
        for chunk in self._store.read(key, 0, LARGEST_MANIFEST + 1):
            content += chunk
            if len(content) > LARGEST_MANIFEST:
                raise ValueError("too large for a manifest")
        return bytes(content)

    def _modified(self, key: str) -> datetime | None:
        try:
            return self._store.stat(key).modified
        except ObjectMissing:
            return None

    def _is_its_own(self, manifest: dict[str, Any], key: str) -> bool:
        """As the first copy is called, or as a copy in this storage would be: what somebody has copied to
        elsewhere by hand is theirs. A folder may lie in another storage's folder, where the same object is
        called otherwise."""
        artifact = manifest.get("artifact")
        named = str(artifact.get("key", "")) if isinstance(artifact, dict) else ""
        if self._storage.kind == StorageKind.S3:
            return key in (named, moved_key(named, self._storage.prefix))
        return named == key


def _known(keys: set[str], **columns: Any) -> set[str]:
    """Those that a row with these columns speaks of."""
    copies, uploads = (
        model._default_manager.filter(storage_key__in=keys, **columns) for model in (BackupCopy, Upload)
    )
    return {*copies.values_list("storage_key", flat=True), *uploads.values_list("storage_key", flat=True)}


def _needed(manifest: dict[str, Any], key: str) -> str:
    try:
        job_id = UUID(str(manifest.get("job_id")))
    except ValueError:
        return "its manifest names no job"
    if _known({key}):  # of whatever storage: two rows may lead to the same place
        return "an object of another storage is called so, too, and the two may be one"
    if QueuedJob.objects.filter(id=job_id, status__in=["pending", "active"]).exists():
        return "its job has not ended"
    backup = BackupJob.objects.filter(id=job_id).first()
    if backup is None:
        known = TimelineLine.objects.filter(job_id=job_id).exists()
        return "" if known else "made here, but its job was never heard of: is this database older than it?"
    stored = backup.copies.filter(state=CopyState.GOOD).exists()
    if backup.status == Status.COMPLETED and not stored:
        return f"it may be all that is left of the backup {backup.id}"
    return ""
