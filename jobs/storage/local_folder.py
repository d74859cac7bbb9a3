"""Walking below a storage's folder so that no key, dot or symbolic link ever leads out of it.

Every step opens one folder relative to the one before (openat) and follows no link, so nothing that
somebody swaps in between can redirect it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .base import AlreadyExists, ObjectMissing, StoreError

PART = ".part"  # `.<name>.<random>.part` beside the object in the making
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = {errno.ENOSPC: "The disk is full", errno.EDQUOT: "The disk quota is used up"}


def is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(PART)


def last_step(key: str) -> str:
    return key.rsplit("/", 1)[-1]


def sync_folder(descriptor: int) -> None:
    """Make names durable; some network and FUSE file systems know no such thing."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise


class Folder:
    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name

    def split(self, key: str) -> list[str]:
        """The key's steps; StoreError for one that is empty, hidden in dots or the name of a part file."""
        steps = key.split("/")
        if any(step in ("", ".", "..") or "\0" in step for step in steps) or is_part(steps[-1]):
            raise StoreError(f"{self.name}: {key!r} is no name for an object in a folder.")
        return steps

    @contextmanager
    def root_fd(self) -> Iterator[int]:
        with self.errors("", "open the folder"):
            try:
                descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError as error:
                raise StoreError(
                    f"{self.name}: the folder {self.root} does not exist. Create it, or mount its disk."
                ) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def parent_fd(self, key: str, *, create: bool = False) -> Iterator[int]:
        """The folder that holds the key's last step. ObjectMissing when it is not there."""
        with self.root_fd() as root:
            current = os.dup(root)
            try:
                for step in self.split(key)[:-1]:
                    with self.errors(key, "open its folder"):
                        below = self._step(current, step, create=create)
                    os.close(current)
                    current = below
                yield current
            finally:
                os.close(current)

    def _step(self, parent: int, step: str, *, create: bool) -> int:
        for _ in range(20):  # another worker's `prune` may remove the folder just as it was made
            try:
                return os.open(step, FOLDER, dir_fd=parent)
            except FileNotFoundError:
                if not create:
                    raise
            try:
                os.mkdir(step, 0o700, dir_fd=parent)
            except FileExistsError:
                continue
            sync_folder(parent)
        raise FileNotFoundError(errno.ENOENT, "folder keeps vanishing", step)

    def prune(self, key: str) -> None:
        """Remove the key's folders that are empty now, never the root."""
        steps = self.split(key)[:-1]
        for depth in range(len(steps), 0, -1):
            try:
                with self.parent_fd("/".join(steps[:depth])) as parent:
                    os.rmdir(steps[depth - 1], dir_fd=parent)
            except (OSError, StoreError):
                return

    @contextmanager
    def errors(self, key: str, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._translate(error, key, doing) from error

    def _translate(self, error: OSError, key: str, doing: str) -> StoreError:
        where = f"{self.name}, folder {self.root}" + (f", {key}" if key else "")
        said = f"{where}: cannot {doing}: {error.strerror}."
        if isinstance(error, FileNotFoundError):
            return ObjectMissing(said)
        if isinstance(error, FileExistsError):
            return AlreadyExists(f"{where} exists already and is never overwritten.")
        if error.errno in _FULL:
            return StoreError(
                f"{where}: cannot {doing}. {_FULL[error.errno]} ({self._free()}). "
                "Free space, delete old backups, or choose another storage."
            )
        if error.errno == errno.EFBIG:
            return StoreError(f"{said} The file system or a limit (ulimit -f) forbids files of this size.")
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return StoreError(f"{said} Make the folder writable for the account that runs pgbr.")
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return StoreError(
                f"{said} Symbolic links are not followed inside a storage's folder: "
                "make the storage's folder itself the link."
            )
        return StoreError(f"{said} Check the disk.", transient=error.errno in (errno.EIO, errno.ESTALE))

    def _free(self) -> str:
        try:
            found = os.statvfs(self.root)
        except OSError:
            return "free space unknown"
        return f"{found.f_bavail * found.f_frsize / 1e6:,.0f} MB are free"
