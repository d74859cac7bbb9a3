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

_lock = threading.Lock()
_taken: Counter[int] = Counter()  # by account


class TookTooLong(ServiceError):
    """Nobody waits for it any more."""


@contextmanager
def turn(account: User) -> Iterator[None]:
    """Raises `ServiceError` when too many wait already, or this account waits for too much."""
    with _lock:
        if _taken[account.pk] >= MOST_EACH or _taken.total() >= MOST_AT_ONCE:
            whose = "of yours " if _taken[account.pk] >= MOST_EACH else ""
            raise ServiceError(
                f"Other looks {whose}at servers or files are under way: wait for them, which takes at most "
                f"{LONGEST_SECONDS:.0f} s, then try again."
            )
        _taken[account.pk] += 1
    try:
        yield
    finally:
        with _lock:
            _taken[account.pk] -= 1


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
    """`turn` and `within` LONGEST_SECONDS."""
    with turn(account), within(LONGEST_SECONDS, what) as control:
        yield control
