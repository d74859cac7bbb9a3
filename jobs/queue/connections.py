"""Few connections for many threads.

A worker at the default runs 15 jobs, and each writes a line a second at most. So the job threads of a
process share one connection, borrowed for the length of one transaction; while a tool runs, no thread
holds any.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import Error, InterfaceError, OperationalError

from jobs.backoff import pause_after

Result = TypeVar("Result")

READ_ONLY, IDLE_TOO_LONG, NO_SUCH_TABLE = "25006", "25P03", "42P01"
IDLE_SECONDS = 60.0

log = logging.getLogger(__name__)


def is_outage(error: BaseException) -> bool:
    """The database is away, read-only (a failover under way) or not migrated yet, or it ended our session
    while we were frozen: wait, do not give up."""
    state = getattr(error.__cause__, "sqlstate", None)
    return isinstance(error, OperationalError | InterfaceError) or state in {
        READ_ONLY,
        IDLE_TOO_LONG,
        NO_SUCH_TABLE,
    }


def limit_idle_transactions(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """A process that is frozen in the middle of a transaction, or whose machine is gone, loses its locks: all
    others wait for them. Not as an option of the connection, which poolers refuse."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS * 1000:.0f}ms'")


class _Shared:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._wrapper: BaseDatabaseWrapper | None = None

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        with self._lock:
            if self._wrapper is None:
                self._wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
                self._wrapper.inc_thread_sharing()
            own = [
                found for found in connections.all(initialized_only=True) if found.alias == DEFAULT_DB_ALIAS
            ]
            connections[DEFAULT_DB_ALIAS] = self._wrapper
            try:
                self._wrapper.close_if_unusable_or_obsolete()
                yield
            finally:
                del connections[DEFAULT_DB_ALIAS]
                for wrapper in own:
                    connections[DEFAULT_DB_ALIAS] = wrapper


_shared = _Shared()
borrowed = _shared.borrowed


def patiently(write: Callable[[], Result], pause: Callable[[float], bool]) -> Result:
    """The result of `write` on the borrowed connection, tried again for as long as the database is away.

    `pause(seconds)` waits and returns whether to give up (the process is stopping); then the error is
    raised.
    """
    failures = 0
    while True:
        try:
            with borrowed():
                return write()
        except Error as error:
            if not is_outage(error):
                raise
            if failures == 0:
                log.warning("the database is away, a job waits to write to it: %s", str(error).strip())
            failures += 1
            if pause(pause_after(failures)):
                raise


def refresh() -> None:
    """Drop the calling thread's own connection if it is broken or old; the next use makes a new one."""
    connection.close_if_unusable_or_obsolete()
