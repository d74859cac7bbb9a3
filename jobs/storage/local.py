"""A folder as a store: whole files only, durable before they are visible, never overwritten."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from .base import (
    CHUNK,
    ObjectInfo,
    ObjectMissing,
    Stop,
    Stopped,
    Store,
    StoreError,
    TokenSink,
    Writer,
    ignore_token,
    never,
)
from .local_folder import FOLDER, PART, Folder, is_part, last_step, sync_folder
from .local_write import LocalWriter, part_stem

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: a FIFO must not hang us


class LocalStore(Store):
    def __init__(self, folder: Path | str, *, name: str = "") -> None:
        self.name = name or str(folder)
        self._folder = Folder(Path(folder).absolute(), f"Storage {self.name}")

    def writer(
        self,
        key: str,
        *,
        size_hint: int | None = None,  # noqa: ARG002
        content_type: str = "application/octet-stream",  # noqa: ARG002
        on_token: TokenSink = ignore_token,
        stop: Stop = never,  # noqa: ARG002
    ) -> Writer:
        """Hint, content type and stop mean nothing to a folder."""
        return LocalWriter(self._folder, key, on_token=on_token)

    def put_bytes(
        self,
        key: str,
        data: bytes,
        *,
        overwrite: bool = False,
        stop: Stop = never,  # noqa: ARG002
    ) -> None:
        with LocalWriter(self._folder, key, on_token=ignore_token, overwrite=overwrite) as writer:
            writer.write(data)
            writer.commit()

    def read(
        self, key: str, start: int = 0, end: int | None = None, *, stop: Stop = never
    ) -> Iterator[bytes]:
        with self._folder.parent_fd(key) as parent, self._folder.errors(key, "read it"):
            descriptor = os.open(last_step(key), _READ, dir_fd=parent)
        with os.fdopen(descriptor, "rb", buffering=0) as file, self._folder.errors(key, "read it"):
            size = self._regular(key, os.fstat(descriptor)).st_size
            at, end = start, size if end is None else min(end, size)
            while at < end:
                if stop():
                    raise Stopped(
                        f"{self._folder.name}, {key}: stopped while it was being read.", transient=True
                    )
                chunk = os.pread(file.fileno(), min(CHUNK, end - at), at)
                if not chunk:
                    raise StoreError(f"{self._folder.name}, {key}: became shorter while it was being read.")
                at += len(chunk)
                yield chunk

    def link(self, key: str, path: Path) -> bool:
        with self._folder.parent_fd(key) as parent:
            try:
                os.link(last_step(key), path, src_dir_fd=parent, follow_symlinks=False)
            except OSError:
                return False
        if not modes.S_ISREG(path.lstat().st_mode):
            path.unlink()
            return False
        return True

    def stat(self, key: str) -> ObjectInfo:
        with self._folder.parent_fd(key) as parent, self._folder.errors(key, "look at it"):
            found = os.stat(last_step(key), dir_fd=parent, follow_symlinks=False)
            return _info(key, self._regular(key, found))

    def delete(self, key: str) -> None:
        try:
            with self._folder.parent_fd(key) as parent, self._folder.errors(key, "delete it"):
                os.unlink(last_step(key), dir_fd=parent)
                sync_folder(parent)
        except ObjectMissing:
            return
        self._folder.prune(key)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        with self._folder.root_fd() as root:
            yield from self._list(root, "", prefix)

    def discard(self, key: str, token: str) -> None:
        if not token:
            return
        if not is_part(token) or not token.startswith(part_stem(key)) or "/" in token:
            raise StoreError(f"{self._folder.name}: {token!r} is no unfinished write of {key}.")
        with suppress(ObjectMissing):
            with self._folder.parent_fd(key) as parent, self._folder.errors(key, "discard its leftovers"):
                os.unlink(token, dir_fd=parent)
            self._folder.prune(key)

    def discard_all(self, key: str) -> None:
        stem = part_stem(key)
        with suppress(ObjectMissing):
            with self._folder.parent_fd(key) as parent, self._folder.errors(key, "discard its leftovers"):
                for name in os.listdir(parent):
                    if is_part(name) and name.startswith(stem) and "." not in name[len(stem) : -len(PART)]:
                        with suppress(FileNotFoundError):
                            os.unlink(name, dir_fd=parent)
            self._folder.prune(key)

    def prepare(self) -> None:
        with self._folder.errors("", "create the folder"):
            self._folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._folder.root_fd():
            if not os.access(self._folder.root, os.W_OK | os.X_OK):
                raise StoreError(
                    f"{self._folder.name}: the account that runs pgbr may not write to {self._folder.root}. "
                    "Give it to that account, or choose another folder."
                )

    def _list(self, folder: int, path: str, prefix: str) -> Iterator[ObjectInfo]:
        with self._folder.errors(path, "list"), os.scandir(folder) as entries:
            found = sorted(e.name + "/" if e.is_dir(follow_symlinks=False) else e.name for e in entries)
        for name in found:
            key = path + name
            if name.endswith("/"):
                if key.startswith(prefix) or prefix.startswith(key):
                    yield from self._list_below(folder, key, prefix)
            elif key.startswith(prefix) and not is_part(name):
                with suppress(FileNotFoundError):
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if modes.S_ISREG(status.st_mode):
                        yield _info(key, status)

    def _list_below(self, folder: int, path: str, prefix: str) -> Iterator[ObjectInfo]:
        try:
            with self._folder.errors(path, "list"):
                below = os.open(last_step(path[:-1]), FOLDER, dir_fd=folder)
        except ObjectMissing:
            return
        try:
            yield from self._list(below, path, prefix)
        finally:
            os.close(below)

    def _regular(self, key: str, found: os.stat_result) -> os.stat_result:
        if not modes.S_ISREG(found.st_mode):
            raise ObjectMissing(f"{self._folder.name}, {key}: is no regular file.")
        return found


def _info(key: str, found: os.stat_result) -> ObjectInfo:
    return ObjectInfo(key, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))
