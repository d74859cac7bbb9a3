"""What somebody sits before a page for, while a server that is not ours or a large file takes its time.

Each holds a thread of the site, of which there are few: so not many at once, not many of one account, and
none for longer than `LONGEST_SECONDS`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.contrib.auth.models import User

from jobs.pgtools.archive import patience
from jobs.pgtools.errors import PgToolsError
from jobs.processors.base import JobFailed
from jobs.processors.control import Control, Stop, Stopped
from jobs.services import ServiceError
from jobs.storage.base import StoreError

LONGEST_SECONDS = 60.0
LOGIN_SECONDS = 15  # of them, whatever a URL's connect_timeout
MOST_AT_ONCE = 6  # gunicorn.conf.py has 16 threads
MOST_EACH = 2


class TooMany(ServiceError):
    """Others are at it; try again later."""


class TookTooLong(ServiceError):
    """Nobody waits for it any more."""


class Turns:
    """At most `most` of `what` at once in this process, and `each` of them for one account."""

    def __init__(self, what: str, most: int, each: int) -> None:
        self._what = what
        self._most = most
        self._each = each
        self._lock = threading.Lock()
        self._taken: Counter[int] = Counter()  # by account

    @contextmanager
    def turn(self, account: User) -> Iterator[None]:
        """Raises `TooMany`."""
        with self._lock:
            own, all_ = self._taken[account.pk], self._taken.total()
            if own >= self._each or all_ >= self._most:
                who = f"{own} {self._what} of yours" if own >= self._each else f"{all_} {self._what}"
                raise TooMany(f"{who} are under way already. Try again when one has ended.")
            self._taken[account.pk] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[account.pk] -= 1


looks = Turns("looks at servers and files", MOST_AT_ONCE, MOST_EACH)


@contextmanager
def within(seconds: float, what: str) -> Iterator[Control]:
    """A control that is stopped when the time is over, and with it the reading of archives.

    Raises `TookTooLong` for whatever breaks by that; `what` begins its sentence.
    """
    control = Control()
    timer = threading.Timer(seconds, control.stop, [Stop.CANCEL])
    timer.daemon = True
    timer.start()
    try:
        with patience.until(control.stopped):
            yield control
    except (Stopped, ServiceError, PgToolsError, StoreError, JobFailed, psycopg.Error) as error:
        if not control.stopped():
            raise
        raise TookTooLong(f"{what} was not done within {seconds:.0f} s. {REMEDY}") from error
    finally:
        timer.cancel()


REMEDY = (
    "A server, or something before it, does not answer; or a large file has its list at its end, and a job "
    "looks for as long as it needs."
)


@contextmanager
def awaited(account: User, what: str) -> Iterator[Control]:
    """In turn, and `within` LONGEST_SECONDS. Raises `TooMany`, `TookTooLong`."""
    with looks.turn(account), within(LONGEST_SECONDS, what) as control:
        yield control
