"""One copy: chunk by chunk from a good one into another storage, compared with the record, read back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jobs.copying.lease import Lease
from jobs.copying.places import Foreign, Place, one_place
from jobs.copying.sources import Record, Source, Unusable
from jobs.processors.manifest import as_bytes
from jobs.storage.base import AlreadyExists, ObjectMissing, Store, StoreError
from jobs.storage.keys import globals_key, manifest_key

Result = TypeVar("Result")


class NoSource(StoreError):
    """None of the good copies can be read, or there is none."""


@dataclass
class Transfer:
    """`manifest` is the backup's. `has_globals`: the copy had some when it was good before. `others`: where
    what is found could be another copy. `made`: the keys of its objects that are there by now."""

    lease: Lease
    store: Store
    key: str
    token: str
    record: Record
    manifest: dict[str, Any] | None
    sources: list[Source]
    has_globals: bool = False
    others: list[Place] = field(default_factory=list)
    made: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Raises `StoreError`, and `Lost` or `Stopped` when it was told to stop. Unfinished writes are gone
        then, finished objects (`made`) not."""
        self.store.prepare()
        self.store.discard(self.key, self.token)
        self.store.discard_all(self.key)
        found = self._is_there()
        if not found:
            self._write()
        self._accompany(found=found)
        self.lease.renew()

    def unmake(self) -> None:
        """Take the copy away again, the manifest last. Raises `StoreError`."""
        for key in self.made:
            self.store.delete(key)

    # The artifact -----------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        """Whole, from an earlier try that nobody could note down. What is not the copy and is surely ours is
        deleted, as soon as there is something whole to put into its place."""
        try:
            size = self.store.stat(self.key).size
        except ObjectMissing:
            return False
        except StoreError as error:
            if error.transient:
                raise
            return False  # an access key that may only put: the writer will find out
        problem = self.record.other_size(size) or self._difference()
        if problem is None:
            self._require_another_place()
            self.made.append(self.key)
            return True
        if size:
            self._require_ours(problem)
            self._require_whole_source()
        self._remove_damaged()
        return False

    def _require_another_place(self) -> None:
        for other in self.others:
            if other.shows(self.store, self.key):
                raise one_place(self.store.name, other)

    def _remove_damaged(self) -> None:
        self.lease.renew()
        try:
            self.store.delete(self.key)
        except StoreError as error:
            if error.transient:
                raise
            raise Foreign(f"It is damaged and cannot be replaced: {error}") from error

    def _write(self) -> None:
        try:
            self._from_any_source(self._write_from)
        except AlreadyExists as error:
            if not self._is_there():
                raise Foreign(f"{error} It is gone by now; the next try will store the copy.") from error

    def _write_from(self, source: Source) -> None:
        with self.store.writer(
            self.key, size_hint=self.record.size, on_token=self._remember, stop=self.lease.stopped
        ) as writer:
            for chunk in source.read(stop=self.lease.stopped):
                writer.write(chunk)
            self.lease.renew()
            writer.commit()
        self.made.append(self.key)
        if not writer.verified and (problem := self._difference()):
            self.unmake()
            raise StoreError(
                f"{self.store.name}, {self.key}: other bytes came back than were stored ({problem}). The "
                "copy was removed again; have the storage checked."
            )

    def _remember(self, token: str) -> None:
        self.lease.write(upload_token=token)

    def _difference(self) -> str | None:
        """Read all of it."""
        digest, size = hashlib.sha256(), 0
        for chunk in self.store.read(self.key, stop=self.lease.stopped):
            digest.update(chunk)
            size += len(chunk)
        return self.record.difference(size, digest.hexdigest())

    def _require_ours(self, problem: str) -> None:
        """Its manifest proves it: nobody else's names this job of this installation."""
        manifest = self._manifest_bytes()
        if manifest is None or not self._holds(manifest_key(self.key), manifest):
            raise Foreign(
                f"{self.store.name}, {self.key}: {problem}, and nothing shows that pgbr wrote it. If nobody "
                "needs it, delete that object; the copy is made then."
            )

    # What lies beside it ----------------------------------------------------------------------------

    def _accompany(self, *, found: bool) -> None:
        self.has_globals = self.has_globals or any(source.has_globals for source in self.sources)
        if self.has_globals and not (found and self._has_its_globals()):
            self._put(globals_key(self.key), self._globals())
        manifest = self._manifest_bytes()
        if manifest is not None:
            self._put(manifest_key(self.key), manifest)

    def _has_its_globals(self) -> bool:
        digest = hashlib.sha256()
        try:
            for chunk in self.store.read(globals_key(self.key), stop=self.lease.stopped):
                digest.update(chunk)
        except ObjectMissing:
            return False
        if digest.hexdigest() != self._globals_sha256:
            return False
        self.made.append(globals_key(self.key))
        return True

    def _globals(self) -> bytes:
        sha256 = self._globals_sha256
        return self._from_any_source(lambda source: source.globals_sql(sha256, stop=self.lease.stopped))

    @property
    def _globals_sha256(self) -> str | None:
        return (self.manifest or {}).get("globals_sha256")

    def _manifest_bytes(self) -> bytes | None:
        return None if self.manifest is None else as_bytes(self.manifest)

    def _put(self, key: str, content: bytes) -> None:
        self.lease.renew()
        try:
            self.store.put_bytes(key, content, stop=self.lease.stopped)
        except AlreadyExists as error:
            if not self._holds(key, content):
                raise Foreign(
                    f"{self.store.name}, {key}: something else lies there. If nobody needs it, delete that "
                    "object; the copy is completed then."
                ) from error
        self.made.append(key)

    def _holds(self, key: str, content: bytes) -> bool:
        try:
            return b"".join(self.store.read(key, 0, len(content) + 1, stop=self.lease.stopped)) == content
        except ObjectMissing:
            return False

    # Sources ----------------------------------------------------------------------------------------

    def _require_whole_source(self) -> None:
        self._from_any_source(lambda source: _drain(source.read(stop=self.lease.stopped)))

    def _from_any_source(self, act: Callable[[Source], Result]) -> Result:
        """The result of `act(source)` with the first source that serves. Raises `NoSource`."""
        troubles = []
        for source in self.sources:
            try:
                return act(source)
            except Unusable as trouble:
                troubles.append(str(trouble))
        if not troubles:
            raise NoSource("The backup has no good copy (any more) to copy from.")
        raise NoSource(f"No copy of the backup can be read: {' '.join(troubles)}")


def _drain(chunks: Iterable[bytes]) -> None:
    for _ in chunks:
        pass
