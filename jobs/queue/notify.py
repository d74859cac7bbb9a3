"""NOTIFY out and LISTEN in.

A notification only saves latency. Payloads carry ids, never text: over 8000 bytes they would abort the
statement that sends them.
"""

from __future__ import annotations

import json
import logging
import time
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import connection

from jobs.backoff import pause_after
from jobs.queue import sql
from jobs.queue.rows import execute

WAKE = "pgbr_jobs"  # payload: the queue's name
CANCEL = "pgbr_cancel"  # payload: the job's id
EVENTS = "pgbr_events"  # payload: {"queue", "event", "id", "user"}

PROBE_SECONDS = 10.0

log = logging.getLogger(__name__)


def wake(queue: str) -> None:
    execute(sql.NOTIFY, {"channel": WAKE, "payload": queue})


def cancel(job_id: UUID) -> None:
    execute(sql.NOTIFY, {"channel": CANCEL, "payload": str(job_id)})


def event(queue: str, name: str, job_id: UUID, user_id: int) -> None:
    """Tell the owner's browser: `name` is progress, completed or failed. Sent at commit."""
    payload = json.dumps({"queue": queue, "event": name, "id": str(job_id), "user": user_id})
    execute(sql.NOTIFY, {"channel": EVENTS, "payload": payload})


def _connect() -> psycopg.Connection[tuple[object, ...]]:
    if settings.DATABASE_DIRECT_URL:
        return psycopg.connect(settings.DATABASE_DIRECT_URL, autocommit=True, connect_timeout=10)
    parameters = connection.get_connection_params()
    wanted = {
        key: parameters[key]
        for key in parameters
        if key not in {"cursor_factory", "context", "server_side_binding"}
    }
    return psycopg.connect(**wanted, autocommit=True)


class Listener:
    """A connection of its own that listens, to be waited for with `select` beside other things.

    A dead one is noticed by a probe every 10 s and made anew with back-off. After each (re)connect
    `poll` reports that something may have been missed.
    """

    def __init__(self, *channels: str) -> None:
        self._channels = channels
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._missed = True
        self._failures = 0
        self._next_try = 0.0
        self._next_probe = 0.0

    def fileno(self) -> int | None:
        """What to select on; None while there is no connection, or one that has just broken."""
        if self._connection is None or self._connection.closed:
            return None
        try:
            return self._connection.fileno()
        except psycopg.Error as error:
            self._broke(error)
            return None

    def wait_at_most(self) -> float:
        """Seconds until `poll` wants to be called even if nothing arrives."""
        due = self._next_probe if self._connection is not None else self._next_try
        return max(0.0, due - time.monotonic())

    def poll(self) -> tuple[list[tuple[str, str]], bool]:
        """(channel, payload) of what arrived, and whether anything may have been missed. Never raises."""
        try:
            live = self._alive()
            if live is None:
                return [], False
            arrived = [(note.channel, note.payload) for note in live.notifies(timeout=0)]
            if time.monotonic() >= self._next_probe:
                live.execute("SELECT 1")
                self._next_probe = time.monotonic() + PROBE_SECONDS
                arrived += [(note.channel, note.payload) for note in live.notifies(timeout=0)]
        except psycopg.Error as error:
            self._broke(error)
            return [], False
        missed, self._missed = self._missed, False
        return arrived, missed

    def _alive(self) -> psycopg.Connection[tuple[object, ...]] | None:
        if self._connection is None and time.monotonic() >= self._next_try:
            opened = _connect()
            self._connection = opened
            for channel in self._channels:
                opened.execute(f'LISTEN "{channel}"'.encode())
            self._missed, self._failures = True, 0
            self._next_probe = time.monotonic() + PROBE_SECONDS
        return self._connection

    def _broke(self, error: psycopg.Error) -> None:
        if self._failures == 0:
            log.warning("lost the LISTEN connection, polling meanwhile: %s", str(error).strip())
        self.close()
        self._failures += 1
        self._next_try = time.monotonic() + pause_after(self._failures)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
