"""Waiting for a store that is away: back-off with jitter, a budget for each outage, an early end."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from .base import Damaged, Stop, Stopped, StoreError

T = TypeVar("T")

logger = logging.getLogger(__name__)

FIRST_PAUSE = 0.25  # seconds
LONGEST_PAUSE = 30.0
DAMAGED_TRIES = 3
STOP_POLL = 0.25  # a cancel or shutdown ends a wait within this many seconds


class Patience:
    """Retries what fails transiently for `budget` seconds of one outage.

    The clock starts at the first failure and is reset by any success, also one of another thread
    that shares this object: ten short outages in a long upload are no reason to give up.
    """

    def __init__(self, budget: float, stop: Stop) -> None:
        self._budget = budget
        self._stop = stop
        self._lock = threading.Lock()
        self._away_since: float | None = None

    def run(self, attempt: Callable[[], T]) -> T:
        """`attempt()`; raises its error when that is permanent or the budget is used up, or Stopped."""
        failures = 0
        while True:
            try:
                result = attempt()
            except StoreError as error:
                if not error.transient or (isinstance(error, Damaged) and failures >= DAMAGED_TRIES):
                    raise
                self.wait(error, failures)
                failures += 1
            else:
                self.progress()
                return result

    def progress(self) -> None:
        with self._lock:
            away_since, self._away_since = self._away_since, None
        if away_since is not None:
            logger.info("The store is back after %.1f s.", time.monotonic() - away_since)

    def wait(self, error: StoreError, failures: int) -> None:
        """Sleep before the next attempt; `failures` is how many came before this one."""
        with self._lock:
            now = time.monotonic()
            first = self._away_since is None
            self._away_since = now if self._away_since is None else self._away_since
            left = self._away_since + self._budget - now
        if left <= 0:
            raise type(error)(f"{error} Gave up after {self._budget:.0f} s.", transient=True) from error
        if first:
            logger.warning("%s Trying again for up to %.0f s.", error, self._budget)
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0)  # noqa: S311
        self._sleep(min(pause, left), error)

    def _sleep(self, seconds: float, error: StoreError) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._stop():
                raise Stopped(f"Stopped while waiting for the store: {error}", transient=True) from error
            time.sleep(min(left, STOP_POLL))
