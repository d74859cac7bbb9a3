"""Writing one object to a folder."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import ExitStack

from .base import ObjectMissing, StoreError, TokenSink, Writer
from .local_folder import PART, Folder, last_step, sync_folder

_STEM = 200  # characters of the object's name in its part file's, which must stay below 255 bytes
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def part_stem(key: str) -> str:
    return f".{last_step(key)[:_STEM]}."


class LocalWriter(Writer):
    """Bytes go to a part file beside the target; `commit` syncs it, then links it to its name."""

    def __init__(self, folder: Folder, key: str, *, on_token: TokenSink, overwrite: bool = False) -> None:
        self._folder = folder
        self._key = key
        self._name = last_step(key)
        self._overwrite = overwrite
        self._descriptors = ExitStack()
        self._over = False
        self._clean = True
        self._visible = False
        self.token = part_stem(key) + secrets.token_hex(8) + PART
        on_token(self.token)  # before there is anything that a kill could leave behind
        self._parent, self._file = self._create()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._must_be_open()
        rest = memoryview(data).cast("B")
        with self._folder.errors(self._key, "write"):
            while len(rest):
                written = os.write(self._file, rest)
                self.size += written
                rest = rest[written:]

    def commit(self) -> None:
        self._must_be_open()
        with self._folder.errors(self._key, "finish it"):
            os.fsync(self._file)
            self._verify(os.fstat(self._file).st_size)
            self._publish()
            sync_folder(self._parent)
        self._over = True
        self._descriptors.close()

    def abort(self) -> bool:
        if self._over:
            return self._clean
        self._over = True
        names = [self.token, self._name] if self._visible else [self.token]
        for name in names:
            self._clean = self._remove(name) and self._clean
        self._descriptors.close()
        self._folder.prune(self._key)
        return self._clean

    def _verify(self, found: int) -> None:
        if found != self.size:
            raise StoreError(
                f"{self._folder.name}, {self._key}: {found} bytes are in the file, {self.size} were written. "
                "Check the disk, and that nothing else changes the folder."
            )

    def _must_be_open(self) -> None:
        if self._over:  # the descriptor's number may belong to another file by now
            raise ValueError("this object is committed or aborted")

    def _create(self) -> tuple[int, int]:
        for attempt in range(20):  # `prune` of another worker may remove the folder before it is filled
            with ExitStack() as stack:
                parent = stack.enter_context(self._folder.parent_fd(self._key, create=True))
                try:
                    with self._folder.errors(self._key, "create its file"):
                        file = os.open(self.token, _CREATE, 0o600, dir_fd=parent)
                except ObjectMissing:
                    if attempt < 19:
                        continue
                    raise
                stack.callback(os.close, file)
                self._descriptors = stack.pop_all()
                return parent, file
        raise StoreError(f"{self._folder.name}, {self._key}: its folder keeps vanishing.")

    def _publish(self) -> None:
        if self._overwrite:
            os.replace(self.token, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
            return
        try:
            os.link(self.token, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            self._reserve_and_rename()
        else:
            self._visible = True
            os.unlink(self.token, dir_fd=self._parent)

    def _reserve_and_rename(self) -> None:
        """exFAT, SMB and some FUSE file systems have no hard links: claim the name, then replace it."""
        os.close(os.open(self._name, _CREATE, 0o600, dir_fd=self._parent))
        self._visible = True
        os.replace(self.token, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)

    def _remove(self, name: str) -> bool:
        try:
            os.unlink(name, dir_fd=self._parent)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True
