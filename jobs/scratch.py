"""Folders for a while, removed afterwards, also when their process was killed: they may hold a password file.

A folder's lock is held for as long as its process lives. Whoever gets it knows the folder to be an orphan.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from django.conf import settings

LOCK = "lock"
UNFINISHED = ".new-"
UNFINISHED_SECONDS = 60  # far longer than it takes to lock a folder
RESERVE_BYTES = 128 * 2**20  # what is left for others on the disk
LOOK_SECONDS = 0.5


class DiskFull(OSError):
    """Less than RESERVE_BYTES are free."""


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """An empty folder (0700) of the caller's own under PGBR_HOME/scratch; `name` begins its name."""
    root = _root()
    path = root / f"{name}-{secrets.token_hex(4)}"
    # It gets its name once it is locked: a sweep must not come in between.
    draft = root / f"{UNFINISHED}{path.name}"
    with ExitStack() as stack:
        draft.mkdir(mode=0o700)
        stack.callback(shutil.rmtree, draft, ignore_errors=True)
        descriptor = os.open(draft / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, descriptor)
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        draft.rename(path)
        yield path


@contextmanager
def reserve(path: Path, kill: Callable[[], object]) -> Iterator[None]:
    """While inside, a tool writes to `path`'s disk and knows no measure: `kill` ends it before others have no
    room left. Raises `DiskFull` then."""
    done, full = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(LOOK_SECONDS):
            if shutil.disk_usage(path).free < RESERVE_BYTES:
                full.set()
                kill()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if full.is_set():
            raise DiskFull(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
    finally:
        done.set()
        thread.join()


def sweep_orphans() -> int:
    """Remove what killed processes of this machine left behind. An upkeep duty."""
    return sum(_remove_orphan(path) for path in _root().iterdir())


def trouble(error: OSError) -> str:
    """What to tell of an error with a file in there."""
    return (
        f"The scratch folder {settings.SCRATCH_FOLDER} cannot be used: {error.strerror or error}. Free space "
        "there, and see that it belongs to the account that runs the worker."
    )


def _remove_orphan(path: Path) -> int:
    with suppress(OSError):
        if path.name.startswith(UNFINISHED) and time.time() - path.stat().st_mtime < UNFINISHED_SECONDS:
            return 0
        if not (path / LOCK).exists():  # killed before it was locked, or in the middle of removing it
            shutil.rmtree(path, ignore_errors=True)
            return 1
        descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            return 1
        finally:
            os.close(descriptor)
    return 0


def _root() -> Path:
    root = Path(settings.SCRATCH_FOLDER)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root
