"""A folder for one run of one job, removed afterwards, also when its worker was killed.

The folder's lock is held for as long as its worker lives. Whoever gets it knows the folder to be an orphan.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

from jobs.queue.rows import Job

LOCK = "lock"


def trouble(error: OSError) -> str:
    """What to tell of an error with a file of the scratch folder's."""
    return (
        f"The scratch folder {settings.SCRATCH_FOLDER} cannot be used: {error.strerror or error}. Free space "
        "there, and see that it belongs to the account that runs the worker."
    )


@contextmanager
def job_folder(job: Job) -> Iterator[Path]:
    """An empty folder (0700) of this claim's own under PGBR_HOME/scratch."""
    root = _root()
    folder = root / f"{job.queue}-{job.id.hex[:8]}-{job.claim_id.hex[:8]}"
    folder.mkdir(mode=0o700)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def sweep_orphans() -> int:
    """Remove the folders that killed workers of this machine left behind. An upkeep duty."""
    return sum(_remove_orphan(folder) for folder in _root().glob("*-*-*") if folder.is_dir())


def _remove_orphan(folder: Path) -> int:
    with suppress(OSError):
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            return 1
        finally:
            os.close(descriptor)
    return 0


def _root() -> Path:
    root = Path(settings.SCRATCH_FOLDER)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root
