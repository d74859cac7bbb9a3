"""The open sessions of one job at its target's server, which may be one that never answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.pgtools.limit import Limit, hang_up
from jobs.processors.at_target.sessions import Session

ASKING_SECONDS = 900.0  # for all that is asked at a time before anything is written
LEAVING_SECONDS = 60.0  # for what a stopped job has written to be cleared away


class Lines:
    """Whoever waits for an answer when they are cut gets psycopg's error."""

    def __init__(self) -> None:
        self._sessions: list[Session] = []
        self._lock = threading.Lock()
        self._limit: Limit | None = None
        self._cut = False
        self._writing = False
        self._closed = threading.Event()

    def add(self, session: Session) -> None:
        with self._lock:
            self._sessions = [one for one in self._sessions if not one.closed]
            self._sessions.append(session)
            if self._limit is not None:
                self._limit.watch(session)
            late = self._cut
        if late:
            hang_up(session)

    def begin_writing(self) -> None:
        """From here on a job that is told to stop has something to clear away."""
        self._writing = True

    def stop(self) -> None:
        """From a thread of its own."""
        if not (self._writing and self._closed.wait(LEAVING_SECONDS)):
            self.cut()

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            sessions = list(self._sessions)
        for session in sessions:
            hang_up(session)

    def close(self) -> None:
        self._closed.set()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While inside, nothing is written, and no answer is waited for longer than ASKING_SECONDS, or taken
        whatever its size."""
        with Limit(ASKING_SECONDS) as limit:
            with self._lock:
                self._limit = limit
                for session in self._sessions:
                    if not session.closed:
                        limit.watch(session)
            try:
                yield
            finally:
                with self._lock:
                    self._limit = None
