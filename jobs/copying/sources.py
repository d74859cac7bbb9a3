"""What is copied: a good copy of the backup, compared with the record as it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from jobs.copying.lease import briefly
from jobs.crypto import CannotDecrypt
from jobs.models import BackupJob, Storage
from jobs.processors import copies
from jobs.storage.base import Stop, Stopped, Store, StoreError
from jobs.storage.keys import globals_key
from jobs.stores import store_for

PATIENCE_SECONDS = 60.0  # with a store that is away: the copy is tried again anyhow, and others wait


class Unusable(Exception):
    """This copy cannot be read, or is not what was stored; why."""


@dataclass(frozen=True)
class Record:
    """What every copy of a backup must be: `size` in bytes."""

    size: int
    sha256: str

    def other_size(self, size: int) -> str | None:
        """In words; None where it is the same."""
        return None if size == self.size else f"{size} bytes lie there, {self.size} were stored"

    def difference(self, size: int, sha256: str) -> str | None:
        """In words; None where there is none."""
        if (size, sha256) == (self.size, self.sha256):
            return None
        return (
            f"{size} bytes with SHA-256 {sha256[:12]}… lie there, {self.size} bytes with "
            f"{self.sha256[:12]}… were stored"
        )


@dataclass(frozen=True)
class Source:
    copy_id: UUID
    storage: Storage
    key: str
    has_globals: bool
    record: Record

    @cached_property
    def store(self) -> Store:
        """Raises `Unusable`."""
        try:
            return store_for(self.storage, retry_seconds=PATIENCE_SECONDS)
        except CannotDecrypt as error:
            raise Unusable(str(error)) from error

    def read(self, *, stop: Stop) -> Iterator[bytes]:
        """All of it. Raises `Unusable`, also at the end when it is not what was stored, and `Stopped`."""
        digest, size = hashlib.sha256(), 0
        try:
            self._require_size()
            for chunk in self.store.read(self.key, stop=stop):
                digest.update(chunk)
                size += len(chunk)
                yield chunk
        except Stopped:
            raise
        except StoreError as error:
            raise Unusable(str(error)) from error
        if problem := self.record.difference(size, digest.hexdigest()):
            self._damaged(problem)

    def globals_sql(self, sha256: str | None, *, stop: Stop) -> bytes:
        """Raises `Unusable`. `sha256`: as recorded, None if it was not."""
        key = globals_key(self.key)
        try:
            content = b"".join(self.store.read(key, stop=stop))
        except Stopped:
            raise
        except StoreError as error:
            raise Unusable(str(error)) from error
        if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            raise Unusable(f"{self.store.name}, {key}: not what was stored.")
        return content

    def _require_size(self) -> None:
        if problem := self.record.other_size(self.store.stat(self.key).size):
            self._damaged(problem)

    def _damaged(self, problem: str) -> None:
        """Say so of that copy too, so that nobody relies on it."""
        said = f"{self.store.name}, {self.key}: {problem}. The object was changed or cut short."
        with briefly():
            copies.mark_damaged(self.copy_id, said)
        raise Unusable(said)


def sources(backup: BackupJob) -> list[Source]:
    """Of the good copies, the one to be read first in front."""
    record = Record(backup.size or 0, backup.sha256 or "")
    return [
        Source(copy.id, copy.storage, copy.storage_key, copy.has_globals, record)
        for copy in copies.good(backup)
    ]
