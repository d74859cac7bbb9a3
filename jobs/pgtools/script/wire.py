"""One session with the server in which every wait can be given up."""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

SECONDS_BETWEEN_BEATS = 0.2
SECONDS_TO_REST = 10.0
_COPY_PIECE = 1 << 14  # libpq and the server copy each piece; small ones stay in the CPU's cache
_UNASKED = (pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)


class Wire:
    """Sends bytes as they are. `beat` is called a few times a second while the server works; it may raise.

    psycopg's own methods must not be used on `connection` between a query that takes data and its end.
    """

    def __init__(self, connection: psycopg.Connection[Any], beat: Callable[[], None]) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._beat = beat
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket)

    def setting(self, name: str) -> str:
        """A setting that the server reports as it changes, such as client_encoding."""
        return (self._pgconn.parameter_status(name.encode()) or b"").decode()

    @property
    def in_transaction(self) -> bool:
        return self._pgconn.transaction_status != pq.TransactionStatus.IDLE

    @property
    def lost(self) -> bool:
        """Whether the session is gone; nothing that follows can work."""
        return self._pgconn.status != pq.ConnStatus.OK

    def query(self, text: bytes) -> bool:
        """Run one statement; True when the server now waits for COPY data. Raises psycopg.Error.

        Text with a semicolon goes by the extended protocol, in which the server takes one statement only:
        what a statement begins with is what it is. Rows that it returns are let go one by one.
        """
        if b";" in text:
            self._pgconn.send_query_params(text, None)
        else:
            self._pgconn.send_query(text)  # half the work for server and client
        self._pgconn.set_single_row_mode()
        self._flush()
        return self._results()

    def batch(self, texts: list[bytes]) -> None:
        """Run statements in one message: all of them or none. Raises psycopg.Error.

        After an error inside a transaction, roll back to the savepoint `pgbr`.
        """
        guarded = [b"SAVEPOINT pgbr", *texts, b"RELEASE SAVEPOINT pgbr"] if self.in_transaction else texts
        self._pgconn.send_query(b";\n".join(guarded))
        self._flush()
        self._results()

    def copy(self, data: bytes) -> None:
        """Send a piece of a COPY's data, after `query` returned True."""
        for at in range(0, len(data), _COPY_PIECE):
            self._pgconn.put_copy_data(memoryview(data)[at : at + _COPY_PIECE])
            self._flush()

    def end_copy(self) -> None:
        """End the data; raises psycopg.Error when the server did not like it."""
        self._pgconn.put_copy_end()
        self._flush()
        self._results()

    def abandon(self) -> None:
        """Stop whatever runs and roll back what is open, or close the session when that takes too long."""
        deadline = monotonic() + SECONDS_TO_REST
        self._beat = lambda: self._close_after(deadline)
        with suppress(psycopg.Error):
            if self._pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                self._connection.cancel_safe(timeout=SECONDS_TO_REST)
                with suppress(psycopg.Error):
                    self._pgconn.put_copy_end(b"given up")
                    self._flush()
                with suppress(psycopg.Error):
                    self._results()
            if self.in_transaction:
                self.query(b"ROLLBACK")
        if self.in_transaction:
            self._connection.close()

    def _close_after(self, deadline: float) -> None:
        if monotonic() > deadline:
            self._connection.close()
            raise psycopg.OperationalError("the server did not stop in time")

    def _flush(self) -> None:
        while self._pgconn.flush():
            self._wait(select.POLLIN | select.POLLOUT)

    def _results(self) -> bool:
        error: pq.abc.PGresult | None = None
        while (result := self._next()) is not None:
            if result.status == pq.ExecStatus.COPY_IN:
                return True
            if result.status in _FAILED:
                error = error or result
            elif result.status in _UNASKED:
                self._connection.close()
                raise psycopg.OperationalError("the server began to send rows of a COPY")
        if error:
            raise error_from_result(error, self._connection.info.encoding)
        return False

    def _next(self) -> pq.abc.PGresult | None:
        while self._pgconn.is_busy():
            self._wait(select.POLLIN)
        return self._pgconn.get_result()

    def _wait(self, events: int) -> None:
        self._poll.modify(self._pgconn.socket, events)
        while not (ready := self._poll.poll(SECONDS_BETWEEN_BEATS * 1000)):
            self._beat()
        if ready[0][1] & ~select.POLLOUT:
            self._pgconn.consume_input()
