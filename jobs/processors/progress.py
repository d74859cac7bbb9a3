"""Writes how far a job is into its history row, once a second, from a thread of its own.

So a database that is slow or away never holds up the dump; what could not be written is simply late.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.utils import Error

from jobs.processors.control import Control, Stop
from jobs.queue import finish
from jobs.queue.connections import borrowed
from jobs.queue.rows import AlreadyEnded, ClaimLost, Job

INTERVAL = 1.0  # seconds

log = logging.getLogger(__name__)

Snapshot = Callable[[], dict[str, Any]]


@contextmanager
def reporting(job: Job, control: Control, snapshot: Snapshot) -> Iterator[None]:
    """While inside, what `snapshot()` returns becomes the row's `progress` whenever it has changed."""
    done = threading.Event()
    thread = threading.Thread(target=_report, args=(job, control, snapshot, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _report(job: Job, control: Control, snapshot: Snapshot, done: threading.Event) -> None:
    written: dict[str, Any] = {}
    while not done.wait(INTERVAL):
        current = snapshot()
        if current == written or control.stopped():
            continue
        try:
            with borrowed():
                finish.progress(job, progress=current)
            written = current
        except (ClaimLost, AlreadyEnded):
            control.stop(Stop.LOST)
        except Error as error:
            log.debug("progress not written: %s", error, extra=job.log_fields)


class Meter:
    """Counts bytes; keeps to a limit of bytes a second if there is one."""

    def __init__(self, limit: int | None, pause: Callable[[float], object]) -> None:
        self.bytes = 0
        self._limit = limit
        self._pause = pause
        self._started = time.monotonic()

    def add(self, count: int) -> None:
        self.bytes += count
        if self._limit:
            ahead = self.bytes / self._limit - (time.monotonic() - self._started)
            if ahead > 0:
                self._pause(ahead)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started
