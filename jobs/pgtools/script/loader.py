"""Runs a script on a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import psycopg

from .ends import Ends
from .errors import Interrupted, ScriptError, ScriptFailed, described
from .items import Connect, CopyData, CopyEnd, Statement
from .policy import SETTINGS, Policy, quoted
from .scanner import Scanner
from .telling import head, line_of, reason
from .wire import SECONDS_BETWEEN_BEATS, Wire

MOST_KEPT = 20
BATCH_BYTES = 1 << 16
_INSERT = re.compile(rb"INSERT\s", re.IGNORECASE)
_LACKING = "SELECT n FROM unnest(%s::text[]) AS n WHERE n NOT IN (SELECT name FROM pg_catalog.pg_settings)"


@dataclass
class ScriptResult:
    """`statements` that reached the server, `errors` among them that were accepted.

    `first` holds the first errors ("line 120: ALTER TABLE public.x …: ERROR: …"), `notices` the first
    warnings and notices of the server, both MOST_KEPT at most.
    """

    statements: int = 0
    errors: int = 0
    first: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class Loader:
    """Loads one script into the database that `connection` (in autocommit) is connected to.

    `target_name` is that database's, whatever the script calls it. With `accept_errors` a refused statement
    is counted and the next one tried; not so with `single_transaction`. `role` is set before. `skip` names
    options among policy.LEFT_OUT. `on_progress(line, words)` tells a few times a second where it is;
    `stop()` is asked as often.

    The session is left with the settings of the script. It may be closed when something went wrong.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        *,
        target_name: str,
        single_transaction: bool,
        accept_errors: bool,
        role: str = "",
        on_progress: Callable[[int, str], None],
        stop: Callable[[], bool],
        skip: frozenset[str] = frozenset(),
    ) -> None:
        self._connection = connection
        self._single = single_transaction
        self._accepts = accept_errors and not single_transaction
        self._role = role
        self._target_name = target_name
        self._skip = skip
        self._on_progress = on_progress
        self._stop = stop
        self._wire = Wire(connection, self._beat)
        self._result = ScriptResult()
        self._current = Statement(0, b"")
        self._copying = False
        self._line = self._data_line = 0
        self._next_beat = 0.0
        self._waiting: list[Statement] = []
        self._waiting_bytes = 0

    def run(self, chunks: Iterable[bytes], before_commit: Callable[[], None]) -> ScriptResult:
        """Load the script that `chunks` (decompressed, of any length) make up.

        `before_commit` is called when all of it was read and run, and before the COMMIT of a single
        transaction; what it raises rolls that back. Raises ScriptError, ScriptFailed, Interrupted and what
        `chunks` raises; what is open then is rolled back.
        """
        self._connection.add_notice_handler(self._notice)
        try:
            policy = self._begin()
            ends = Ends(chunks)
            self._run_items(Scanner(self._beating(ends)), policy)
            self._check_end(ends)
            before_commit()
            if self._single:
                self._ours(b"COMMIT")
        except BaseException:
            self._wire.abandon()
            raise
        finally:
            self._connection.remove_notice_handler(self._notice)
        return self._result

    def _begin(self) -> Policy:
        self._ours(b"SET client_encoding = 'UTF8'")
        if self._role:
            self._ours(b"SET ROLE " + quoted(self._role))
        lacking = self._lacking()
        # Whoever opened the session may have taken it away from us; scripts count on the database's own.
        self._ours(b"RESET search_path")
        if self._single:
            self._ours(b"BEGIN")
        return Policy(self._target_name, single_transaction=self._single, lacking=lacking, skip=self._skip)

    def _lacking(self) -> frozenset[str]:
        try:
            return frozenset(n for (n,) in self._connection.execute(_LACKING, [list(SETTINGS)]).fetchall())
        except psycopg.Error as error:
            raise ScriptFailed(0, head(_LACKING.encode()), reason(error)) from error

    def _ours(self, text: bytes) -> None:
        """A statement that is not the script's, and without which nothing goes."""
        try:
            self._wire.query(text)
        except psycopg.Error as error:
            raise ScriptFailed(0, head(text), reason(error)) from error

    def _run_items(self, scanner: Scanner, policy: Policy) -> None:
        self._follow(scanner)
        for item in scanner:
            if isinstance(item, Statement):
                self._statement(item, policy)
                self._follow(scanner)
                continue
            self._send_waiting()
            match item:
                case CopyData():
                    self._data(item)
                case CopyEnd():
                    self._end_of_data()
                case Connect():
                    policy.connect(item)
        self._send_waiting()

    def _follow(self, scanner: Scanner) -> None:
        """How text is to be read is the server's to say: SET is not the only way to change it."""
        scanner.standard_strings = self._wire.setting("standard_conforming_strings") == "on"
        scanner.encoding = self._wire.setting("client_encoding")

    def _statement(self, item: Statement, policy: Policy) -> None:
        if _INSERT.match(item.text) and (self._single or not self._wire.in_transaction):
            self._waiting.append(item)
            self._waiting_bytes += len(item.text)
            if self._waiting_bytes > BATCH_BYTES:
                self._send_waiting()
            return
        self._send_waiting()
        text = policy.for_server(item)
        if text is not None:
            self._send(item, text)

    def _send(self, item: Statement, text: bytes) -> None:
        self._current, self._line, self._data_line = item, item.line, 0
        self._beat()
        self._result.statements += 1
        with self._answering():
            self._copying = self._wire.query(text)
            if self._copying != item.takes_data:
                raise ScriptError(item.line, "the server takes this for another statement than pgbr does.")

    def _send_waiting(self) -> None:
        """INSERTs go many in one message: of a single one, most of the time is the way there and back.

        When one is refused, none was done; then each goes alone, and all is as if it had from the first.
        """
        items, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if len(items) > 1:
            self._current, self._line = items[0], items[0].line
            self._beat()
            try:
                self._wire.batch([item.text for item in items])
            except psycopg.Error:
                if self._single and not self._wire.lost:
                    self._ours(b"ROLLBACK TO SAVEPOINT pgbr")
            else:
                self._result.statements += len(items)
                return
        for item in items:
            self._send(item, item.text)

    def _data(self, item: CopyData) -> None:
        """Rows for a COPY that was refused are passed over."""
        self._line, self._data_line = item.line, self._data_line or item.line
        if self._copying:
            with self._answering():
                self._wire.copy(item.data)

    def _end_of_data(self) -> None:
        if self._copying:
            self._copying = False
            with self._answering():
                self._wire.end_copy()

    def _check_end(self, ends: Ends) -> None:
        if self._wire.in_transaction and not self._single:
            raise ScriptError(
                self._line, "the script ends inside a transaction that it began; COMMIT is missing."
            )
        if ends.cut_off:
            self._fail(
                self._line, "end of the file", "the closing comment of pg_dump is missing; it is cut off."
            )

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """What the server refuses is counted or raised; a lost session is no answer."""
        try:
            yield
        except psycopg.Error as error:
            line, what = line_of(error, self._current, self._data_line), head(self._current.text)
            if self._wire.lost or error.diag.severity_nonlocalized in ("FATAL", "PANIC"):
                raise ScriptFailed(line, what, f"the connection was lost: {reason(error)}") from error
            self._fail(line, what, reason(error), error)

    def _fail(self, line: int, what: str, why: str, cause: Exception | None = None) -> None:
        if not self._accepts:
            raise ScriptFailed(line, what, why) from cause
        self._result.errors += 1
        if len(self._result.first) < MOST_KEPT:
            self._result.first.append(described(line, what, why))

    def _notice(self, said: psycopg.errors.Diagnostic) -> None:
        if len(self._result.notices) < MOST_KEPT:
            self._result.notices.append(f"line {self._line}: {said.severity}: {said.message_primary}")

    def _beating(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._beat()
            yield chunk

    def _beat(self) -> None:
        now = monotonic()
        if now < self._next_beat:
            return
        self._next_beat = now + SECONDS_BETWEEN_BEATS
        if self._stop():
            raise Interrupted
        self._on_progress(self._line, head(self._current.text))
