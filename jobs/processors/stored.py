"""An artifact to restore from: a copy of a backup, or an upload."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from jobs.crypto import CannotDecrypt
from jobs.models import BackupCopy, BackupJob, Upload
from jobs.models.storage import CopyState
from jobs.pgtools.archive.contents import Contents, inspect
from jobs.pgtools.errors import PgToolsError
from jobs.processors import copies
from jobs.processors.base import JobFailed
from jobs.storage.base import Stop, Store, StoreError, never
from jobs.storage.keys import globals_key
from jobs.stores import store_for

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class Changed(StoreError):
    """What lies there is not what was stored."""


@dataclass(frozen=True)
class Stored:
    """`manifest` is empty for an upload. `sha256` is what was recorded when it was stored."""

    store: Store
    key: str
    size: int
    sha256: str
    manifest: dict[str, Any]
    has_globals: bool = False
    copy: BackupCopy | None = None  # None: an upload

    def require_size(self) -> None:
        """Raises `Changed` without reading it, `StoreError` when it cannot be looked at."""
        size = self.store.stat(self.key).size
        if size != self.size:
            raise Changed(
                f"{self.store.name}, {self.key}: {size} bytes lie there, {self.size} were stored. The "
                "object was changed or cut short; do not rely on it."
            )

    def read(self, start: int = 0, *, stop: Stop = never) -> Iterator[bytes]:
        return self.store.read(self.key, start, stop=stop)

    def contents(self, *, stop: Stop = never) -> Contents:
        """What it holds, from its beginning. Raises `StoreError`, `PgToolsError`.

        A dump that was streamed does not say how large its parts are; the manifest knows the tables.
        """
        found = inspect(lambda start: self.read(start, stop=stop), self.size, stop=stop)
        if found.toc is None or found.sizes:
            return found
        known = self.database.get("table_bytes")
        weights = known if isinstance(known, dict) else {}
        sizes = {
            entry.dump_id: weights[name]
            for entry in found.toc.entries
            if entry.has_data and (name := f"{entry.schema}.{entry.name}") in weights
        }
        return replace(found, sizes=sizes)

    def globals_sql(self) -> bytes:
        """The server's roles as saved beside it. Raises `StoreError` when they are not what was stored."""
        content = b"".join(self.store.read(globals_key(self.key)))
        if hashlib.sha256(content).hexdigest() != self.manifest.get("globals_sha256"):
            raise Changed(
                f"{self.store.name}, {globals_key(self.key)}: not what was stored; the roles are not created."
            )
        return content

    @property
    def database(self) -> dict[str, Any]:
        """The source's properties from the manifest, {} where there is none."""
        found = self.manifest.get("database")
        return found if isinstance(found, dict) else {}


@dataclass
class Checked:
    """Passes the bytes on and compares them with the record once all are through."""

    stored: Stored
    stop: Stop
    count: int = 0  # bytes so far
    _hash: Any = field(default_factory=hashlib.sha256)
    _chunks: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._chunks is None:
            self._chunks = self.stored.read(stop=self.stop)
        chunk = next(self._chunks)
        self._take(chunk)
        return chunk

    def require_whole(self) -> None:
        """Raises `Changed` unless every byte of what was stored, and no other, has passed."""
        self._compare(self.count, self._hash.hexdigest())

    def read_file(self, path: Path) -> None:
        """Take the bytes from a file that is the object itself. Raises `Changed`."""
        with open(path, "rb", buffering=0) as file:
            buffer = memoryview(bytearray(1 << 20))
            while count := file.readinto(buffer):
                if self.stop():
                    return
                self._take(buffer[:count])
        self.require_whole()

    def _take(self, chunk: bytes | memoryview) -> None:
        self._hash.update(chunk)
        self.count += len(chunk)

    def _compare(self, size: int, sha256: str) -> None:
        stored = self.stored
        if size != stored.size or sha256 != stored.sha256:
            raise Changed(
                f"{stored.store.name}, {stored.key} is not what was stored: {size} bytes with SHA-256 "
                f"{sha256[:12]}…, recorded are {stored.size} bytes with {stored.sha256[:12]}…. It was "
                "changed or cut short; do not rely on it. Restore another backup or copy."
            )


def all_of(backup: BackupJob, *, retry_seconds: float | None = None) -> list[Stored]:
    """Its good copies, the one to be read in front, the others to fall back on. Raises `JobFailed` when there
    is none. Asks the database only."""
    found, trouble = [], None
    for copy in copies.good(backup):
        try:
            store = store_for(copy.storage, retry_seconds=retry_seconds)
        except CannotDecrypt as error:
            trouble = error
        else:
            found.append(
                Stored(
                    store,
                    copy.storage_key,
                    copy.size or 0,
                    copy.sha256 or "",
                    backup.manifest or {},
                    copy.has_globals,
                    copy,
                )
            )
    if trouble is not None and not found:
        raise JobFailed(f"No copy of the backup {backup.id} can be read: {trouble}") from trouble
    if not found:
        raise JobFailed(
            f"The backup {backup.id} of {backup.database_name!r} has no stored copy (any more)."
            + "".join(f" {error}" for error in copies.troubles(backup))
        )
    return found


def first_that_serves(
    found: Sequence[Stored], use: Callable[[Stored], Result], *, stop: Stop = never
) -> tuple[int, Result]:
    """The result of `use(copy)` with the first of the copies that can be read, and its place among them.
    Raises the error of the last one, and any as soon as `stop()` is true: `JobFailed` when it is not there,
    `StoreError`, `PgToolsError`."""
    for place, stored in enumerate(found):
        try:
            _look_at(stored)
            return place, use(stored)
        except (JobFailed, StoreError, PgToolsError) as error:
            if stop() or place == len(found) - 1:
                raise
            log.warning("%s is passed over: %s", stored.key, error)
    raise JobFailed("There is nothing to restore from.")


def _look_at(stored: Stored) -> None:
    try:
        stored.require_size()
    except StoreError as error:
        if stored.copy is None:
            raise
        raise JobFailed(f"No copy of the backup {stored.copy.backup_id} can be read: {error}") from error


def globals_of(found: Sequence[Stored]) -> bytes:
    """The server's roles, from the first of the copies that has them as they were stored. Raises as
    `first_that_serves`."""
    return first_that_serves([stored for stored in found if stored.has_globals], Stored.globals_sql)[1]


def of_backup(backup: BackupJob, *, retry_seconds: float | None = None) -> Stored:
    """The first of its good copies that is there. Raises `JobFailed`."""
    return first_that_serves(all_of(backup, retry_seconds=retry_seconds), lambda stored: stored)[1]


def of_upload(upload: Upload, *, retry_seconds: float | None = None) -> Stored:
    if upload.state != CopyState.GOOD:
        raise JobFailed(f"The upload {upload.name!r} is not complete: send the file again.")
    try:
        store = store_for(upload.storage, retry_seconds=retry_seconds)
    except CannotDecrypt as error:
        raise JobFailed(str(error)) from error
    found = Stored(store, upload.storage_key, upload.size or 0, upload.sha256 or "", {})
    found.require_size()
    return found
