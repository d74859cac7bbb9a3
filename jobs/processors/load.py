"""Runs pg_restore, or sends SQL, into the place that was made ready; counts, hashes and listens meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.pgtools.archive.contents import Contents
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import PgToolsError, ToolFailed
from jobs.pgtools.process import Child, spawn
from jobs.pgtools.progress import rate, seconds_left
from jobs.pgtools.restore_flags import RestoreFlags
from jobs.pgtools.restore_log import RestoreErrors
from jobs.pgtools.restore_progress import RestoreProgress
from jobs.pgtools.restored import restored
from jobs.pgtools.script.errors import Interrupted
from jobs.pgtools.script.loader import Loader
from jobs.pgtools.toolset import Toolset
from jobs.processors.at_target import sessions
from jobs.processors.at_target.lock import Hold
from jobs.processors.base import JobFailed
from jobs.processors.control import Control
from jobs.processors.finding import counted
from jobs.processors.plan import Plan
from jobs.processors.progress import Meter

READ_BYTES = 256 * 1024


@dataclass
class Load:
    """One load into `conninfo`'s database. `snapshot` may be called from another thread meanwhile.

    `total`: bytes that are to come, None if nobody knows.
    """

    contents: Contents
    flags: RestoreFlags
    mode: str
    plan: Plan
    hold: Hold
    control: Control
    total: int | None
    conninfo: Conninfo | None = None
    phase: str = "reading"
    log: str = ""
    errors: int = 0
    first_errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    committing: bool = False  # from here on it may be committed, whoever is told to stop
    list_file: Path | None = None

    def __post_init__(self) -> None:
        self.meter = Meter(None, self.control.wait)
        self._progress = RestoreProgress(self.contents.toc, self.total)
        self._heard = RestoreErrors()
        self._lock = threading.Lock()
        self._seen: tuple[int, float] = (0, 0.0)
        self._kills: list[Callable[[], None]] = []

    def from_staged(self, conninfo: Conninfo, path: Path) -> None:
        """From disk. Raises `ToolFailed`, `ScriptError`, `Stopped`, `JobFailed`."""
        self._begin(conninfo, None if self.plan.client else self.total)
        if self.contents.format == "plain":
            with open(path, "rb", buffering=0) as file:
                self._send(self.counted(iter(lambda: file.read(READ_BYTES), b"")), lambda: None)
        elif self.plan.via_sql:
            self._send(self._script_of(path, ()), lambda: None)
        else:
            self.committing = True
            with self._pg_restore(path, dbname=conninfo.dbname) as child:
                self._end(child)

    def from_stream(self, conninfo: Conninfo, chunks: Iterable[bytes], gate: Callable[[], None]) -> None:
        """Decompressed bytes. `gate` is called when all bytes were read and before the last of them goes on,
        without which nothing is committed; it raises to prevent that."""
        self._begin(conninfo, self.total)
        if self.contents.format == "plain":
            self._send(iter(chunks), gate)
        elif self.plan.via_sql:
            self._send(self._script_of(None, _gated(chunks, gate)), lambda: None)
        else:
            with self._pg_restore(None, dbname=conninfo.dbname) as child:
                feed(child, _gated(chunks, self._then_committing(gate)))
                self._end(child)

    def give_up(self) -> None:
        """From another thread: end what runs, which then fails."""
        for kill in list(self._kills):
            kill()

    def counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The artifact's bytes on their way in, as progress counts them."""
        for chunk in chunks:
            self.control.check()
            self.meter.add(len(chunk))
            yield chunk

    def restart_counting(self) -> None:
        """They have been read once, and are read again from the disk."""
        self.meter = Meter(None, self.control.wait)
        self._seen = (0, 0.0)

    def snapshot(self) -> dict[str, Any]:
        """As `Dump.snapshot`, with the number of errors so far."""
        with self._lock:
            self._progress.advance(self.meter.bytes)
            share, current, step = self._progress.share(), self._progress.current, self._progress.step
        count, elapsed = self.meter.bytes, self.meter.seconds
        (before, at), self._seen = self._seen, (count, elapsed)
        left = seconds_left(share, elapsed)
        return {
            "phase": self.phase,
            "share": round(share, 4),
            "bytes": count,
            "rate": round(rate(before, count, elapsed - at)),
            "eta": None if left is None or self.phase != "restoring" else round(left),
            "table": ", ".join(current) or step,
            "errors": self._heard.count,
        }

    # pg_restore ----------------------------------------------------------------------------------

    def _begin(self, conninfo: Conninfo, total: int | None) -> None:
        self.conninfo, self.phase = conninfo, "restoring"
        self._heard = RestoreErrors(self.contents.toc)
        toc, sizes = self.contents.toc, self.contents.sizes
        coming = restored(toc, self.flags, self.mode).toc if toc is not None else None
        self._progress = RestoreProgress(coming, total, sizes)
        self.control.check()
        self.hold.check()

    @contextmanager
    def _pg_restore(self, path: Path | None, *, dbname: str | None) -> Iterator[Child]:
        assert self.conninfo is not None  # noqa: S101  _begin came before
        client = self._client()
        argv = self.flags.argv(
            client,
            source=path,
            format=self.contents.format,
            dbname=dbname,
            list_file=self.list_file,
            jobs=self.plan.jobs if dbname is not None else 1,
            single_transaction=self.plan.single_transaction and dbname is not None,
        )
        environment = self.conninfo.environment(self.hold.folder, self.hold.application_name)
        child = spawn(
            argv,
            environment | client.environment(),
            cwd=self.hold.folder,
            stdin=path is None,
            stdout=dbname is None,
            on_line=self._hear,
            secrets=self.conninfo.secrets,
        )
        try:
            with child, self._killing(child.kill):
                yield child
        finally:
            self.log = child.log

    def _client(self) -> Toolset:
        assert self.plan.client is not None  # noqa: S101  only plain SQL needs none
        return self.plan.client

    def _end(self, child: Child) -> None:
        try:
            child.check()
        except ToolFailed as error:
            self.hold.check()
            self.control.check_tool(error)
            self._heard_all()
            if not (self.flags.accept_errors and self._heard.complete):
                if self.errors:
                    raise JobFailed(f"pg_restore failed: {self._heard.summary().rstrip('.')}.") from error
                raise
        self.control.check()
        self._heard_all()

    def _heard_all(self) -> None:
        self.errors, self.first_errors = self._heard.count, list(self._heard.first)

    def _hear(self, line: str) -> None:
        with self._lock:
            self._progress.feed(line)
        self._heard.feed(line)

    # SQL -----------------------------------------------------------------------------------------

    def _send(self, chunks: Iterator[bytes], gate: Callable[[], None]) -> None:
        assert self.conninfo is not None  # noqa: S101
        session = self.hold.open(self.conninfo.dbname)
        with session, self._killing(lambda: sessions.cancel(session)):
            loader = Loader(
                session,
                target_name=self.conninfo.dbname,
                single_transaction=self.plan.single_transaction,
                accept_errors=not self.flags.stops_at_errors,
                role=self.flags.role if self.plan.client is None else "",
                on_progress=self._said,
                stop=lambda: self.control.stopped() or self.hold.lost,
                skip=frozenset() if self.plan.client else self.flags.left_out,
            )
            try:
                result = loader.run(chunks, before_commit=self._then_committing(gate))
            except (Interrupted, PgToolsError):
                self.hold.check()
                self.control.check()
                raise
        self.errors, self.first_errors = result.errors, result.first
        self.warnings += result.notices
        if self.errors and not self.flags.accept_errors:
            raise JobFailed(f"{counted(self.errors, 'statement')} failed, the first: {self.first_errors[0]}")

    def _said(self, line: int, words: str) -> None:
        with self._lock:
            self._progress.step = words or f"line {line}"

    def _script_of(self, path: Path | None, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """What pg_restore would do, as SQL. Fed by a thread of its own when it does not read a file."""
        trouble: list[BaseException] = []

        def push(child: Child) -> None:
            try:
                feed(child, chunks)
            except BaseException as error:  # noqa: BLE001 - carried to the job's thread
                trouble.append(error)
                child.kill()

        with self._pg_restore(path, dbname=None) as child:
            thread = threading.Thread(target=push, args=[child], daemon=True)
            if path is None:
                thread.start()
            while chunk := child.stdout.read(READ_BYTES):
                yield chunk
            if path is None:
                thread.join()
            if trouble:
                raise trouble[0]
            self._end(child)

    @contextmanager
    def _killing(self, kill: Callable[[], None]) -> Iterator[None]:
        self._kills.append(kill)
        try:
            with self.control.killing(kill), self.hold.killing(kill):
                yield
        finally:
            self._kills.remove(kill)

    # Bytes ---------------------------------------------------------------------------------------

    def _then_committing(self, gate: Callable[[], None]) -> Callable[[], None]:
        def checked() -> None:
            gate()
            self.control.check()
            self.hold.check()
            self.committing = True

        return checked


def feed(child: Child, chunks: Iterable[bytes]) -> None:
    """All chunks into the tool's stdin. One that failed is not fed any further; for one that has read all it
    wanted, the rest is read all the same, for whoever counts and compares it."""
    reads = True
    for chunk in chunks:
        reads = reads and _write(child, chunk)
        if not reads and child.wait() != 0:
            return
    child.stdin.close()


def _write(child: Child, chunk: bytes) -> bool:
    rest = memoryview(chunk)
    try:
        while rest:
            rest = rest[child.stdin.write(rest) :]
    except BrokenPipeError:
        return False
    return True


def _gated(chunks: Iterable[bytes], gate: Callable[[], None]) -> Iterator[bytes]:
    """The chunks, the last one only after `gate` has let it."""
    held = b""
    for chunk in chunks:
        if held:
            yield held
        held = chunk
    gate()
    if held:
        yield held
