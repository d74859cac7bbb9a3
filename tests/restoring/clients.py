"""People who use a database all the time, and what they notice of a change of names."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

import psycopg

from tests import servers
from tests.waiting import until


class Clients:
    """Each asks again and again, and reconnects at once when it is sent away; one never ends a transaction.

    `query` tells by its answer which database it is.
    """

    def __init__(self, server: servers.TestServer, name: str, query: str, count: int = 4) -> None:
        self._url = server.url(name)
        self._query = query.encode()
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._use, args=[n], daemon=True) for n in range(count)]
        self._gaps = [0.0] * count
        self.answers: list[list[Any]] = [[] for _ in range(count)]
        self.sent_away = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        until(lambda: all(self.answers), "everybody has been served")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    @property
    def longest_gap(self) -> float:
        """Seconds in which the unluckiest of them got no answer."""
        return max(self._gaps)

    def wait_for(self, answer: object) -> None:
        """Until everybody gets that one."""
        until(lambda: all(seen[-1] == answer for seen in self.answers), f"everybody sees {answer}")

    def forget(self) -> None:
        self._gaps = [0.0] * len(self._gaps)

    def _use(self, number: int) -> None:
        last = time.monotonic()
        while not self._done.is_set():
            try:
                with psycopg.connect(self._url, autocommit=number != 0) as session:
                    while not self._done.is_set():
                        self._take(number, session.execute(self._query).fetchone())
                        now = time.monotonic()
                        self._gaps[number], last = max(self._gaps[number], now - last), now
                        time.sleep(0.005)
            except psycopg.Error:
                self.sent_away += 1

    def _take(self, number: int, row: Any) -> None:
        if not self.answers[number] or self.answers[number][-1] != row[0]:
            self.answers[number].append(row[0])
