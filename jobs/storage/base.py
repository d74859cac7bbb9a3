"""What every storage offers: named objects, written once, streamed in and out.

A leaf: nothing here knows Django. Keys come from `keys.object_key`; sizes are bytes, times are UTC.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

CHUNK = 1024 * 1024  # the most bytes `Store.read` yields at once
PROBE_NAME = ".pgbr-probe"
PROBE_BYTES = b"pgbr tests whether it can store, read, list and delete here.\n"

FOREVER = datetime(9999, 1, 1, tzinfo=UTC)  # a lock without a date: a legal hold

Stop = Callable[[], bool]  # polled from any thread; True ends every wait
TokenSink = Callable[[str], None]


def never() -> bool:
    return False


def ignore_token(token: str) -> None:
    """For writers whose leftovers nobody keeps track of."""


class StoreError(Exception):
    """What went wrong, with which object, and the remedy; never a secret.

    `transient` tells a store that is away (the same call may work later) from one that refuses.
    """

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class ObjectMissing(StoreError):
    """The key does not exist."""


class AlreadyExists(StoreError):
    """The key exists; objects are never overwritten."""


class Damaged(StoreError):
    """The bytes that arrived are not those that were sent; worth a few more tries, not minutes."""


class Stopped(StoreError):
    """`stop()` said so while the store was being waited for."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    key: str
    size: int
    modified: datetime  # aware, UTC


@dataclass(frozen=True, slots=True)
class Probe:
    """One verdict per permission: None when it works, else the reason in words."""

    put: str | None = None
    get: str | None = None
    list: str | None = None
    delete: str | None = None

    @property
    def usable(self) -> bool:
        """Good for backups and restores. A key that may not list or delete is a choice."""
        return self.put is None and self.get is None


class Writer(ABC):
    """An object in the making: nothing is visible under its key before `commit` returned.

    As a context manager it aborts unless `commit` was called. `token` names the unfinished
    write for `Store.discard`, should this process die.
    """

    token: str = ""
    size: int = 0  # bytes accepted so far
    verified: bool = False  # after `commit`: the store itself has shown a digest of every byte that was sent

    @abstractmethod
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take `data` (copied, the caller may reuse it); blocks while the store cannot keep up."""

    @abstractmethod
    def commit(self) -> None:
        """Make the object durable and visible. AlreadyExists when another writer was first."""

    @abstractmethod
    def abort(self) -> bool:
        """Remove what was written, and only that; False: leftovers may remain, `discard` them later."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()  # does nothing after a commit


class Store(ABC):
    """Every method raises StoreError (or a subclass) and nothing else for trouble with the store."""

    name: str

    @abstractmethod
    def writer(
        self,
        key: str,
        *,
        size_hint: int | None = None,
        content_type: str = "application/octet-stream",
        on_token: TokenSink = ignore_token,
        stop: Stop = never,
    ) -> Writer:
        """Start an object of unknown size. `size_hint`: the most bytes that are to be expected."""

    @abstractmethod
    def put_bytes(self, key: str, data: bytes, *, overwrite: bool = False, stop: Stop = never) -> None:
        """Store a small object in one go. AlreadyExists unless `overwrite`."""

    @abstractmethod
    def read(
        self, key: str, start: int = 0, end: int | None = None, *, stop: Stop = never
    ) -> Iterator[bytes]:
        """Bytes `start` up to but not including `end`, in chunks of at most CHUNK. ObjectMissing."""

    def link(self, key: str, path: Path) -> bool:  # noqa: ARG002
        """Make `path` another name of the object where it is a file on the same disk; whether that worked.
        Its bytes then need not be copied, and stay when the object is deleted. Never write to it."""
        return False

    @abstractmethod
    def stat(self, key: str) -> ObjectInfo:
        """ObjectMissing when it does not exist."""

    def locked_until(self, key: str) -> datetime | None:  # noqa: ARG002
        """Until when nobody may delete the object, `FOREVER` for a legal hold; None: no lock, or no such
        object. A lock that is over is none."""
        return None

    @abstractmethod
    def delete(self, key: str) -> None:
        """Deleting what does not exist is fine."""

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Finished objects whose key starts with `prefix`; the order is the store's own."""

    @abstractmethod
    def discard(self, key: str, token: str) -> None:
        """Remove the leftovers of the unfinished write `token` of `key`, and nothing else."""

    @abstractmethod
    def discard_all(self, key: str) -> None:
        """Remove the leftovers of every unfinished write of `key`, as far as the store lets them be found:
        for a key that is one run's alone, whose process may have been killed before it could tell a token."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the folder or bucket when it is missing and that is allowed; fail early otherwise."""

    def probe(self, prefix: str = "") -> Probe:
        """Try each operation under `prefix` (a folder, no slash at its end) and report each by itself.

        The key is always the same, so a storage that may not delete keeps one small object, not many.
        """
        key = f"{prefix}/{PROBE_NAME}" if prefix else PROBE_NAME
        put = _verdict(lambda: self.put_bytes(key, PROBE_BYTES, overwrite=True))
        return Probe(
            put=put,
            get=_verdict(lambda: self._probe_get(key, expected=put is None)),
            list=_verdict(lambda: self._probe_list(key, expected=put is None)),
            delete=_verdict(lambda: self.delete(key)),
        )

    def _probe_get(self, key: str, *, expected: bool) -> None:
        try:
            found = b"".join(self.read(key, 0, len(PROBE_BYTES) + 1))
        except ObjectMissing:
            if expected:
                raise
            return
        if expected and found != PROBE_BYTES:
            raise StoreError(f"{self.name}: {key} came back with other content than was stored.")

    def _probe_list(self, key: str, *, expected: bool) -> None:
        listed = any(info.key == key for info in islice(self.list(key), 100))
        if expected and not listed:
            raise StoreError(f"{self.name}: {key} was stored but is not listed.")


def _verdict(step: Callable[[], None]) -> str | None:
    try:
        step()
    except StoreError as error:
        return str(error)
    return None
