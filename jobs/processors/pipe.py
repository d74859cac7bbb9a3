"""From pg_dump into a load: as a stream, or (staged) through a directory on disk, in parallel at both
ends."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from jobs import scratch
from jobs.pgtools.archive.contents import Contents, inspect
from jobs.pgtools.archive.reader import MOST_BYTES
from jobs.pgtools.archive.toc import parse_toc
from jobs.pgtools.binaries import choose
from jobs.pgtools.conninfo import Conninfo
from jobs.pgtools.errors import DamagedArchive, PgToolsError, ToolFailed
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.process import Child, spawn
from jobs.pgtools.progress import DumpProgress
from jobs.pgtools.toolset import Toolset
from jobs.processors.at_target.examination import list_file
from jobs.processors.at_target.sessions import Session
from jobs.processors.base import JobFailed
from jobs.processors.control import Control
from jobs.processors.globals import dump_globals
from jobs.processors.load import Load
from jobs.processors.source import Source, toolsets
from jobs.units import in_bytes

READ_BYTES = 256 * 1024
WATCH_SECONDS = 0.5
DEFAULT_JOBS = 2


def newest_for(source: Source, target: Session) -> Toolset:
    """pg_dump of the target's major where that is newer: it writes what the target understands."""
    return choose(max(source.facts.major, target.info.server_version // 10000), toolsets())


@dataclass
class Pipe:
    """`count`: bytes that pg_dump has put out so far. `snapshot` may be called from another thread."""

    source: Source
    flags: DumpFlags
    staged: bool
    folder: Path  # where the environment of the source's side lies
    application_name: str
    control: Control
    count: int = 0
    log: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._progress = DumpProgress(self.source.weights, "none", self._jobs)
        self._directory = self.folder / "dump"

    @property
    def _jobs(self) -> int:
        return max(self.flags.jobs, DEFAULT_JOBS) if self.staged else 1

    def outline(self) -> Contents:
        """What the dump is going to hold: a dump without rows, which takes a moment. Raises
        `PgToolsError`."""
        flags = replace(self.flags, format="custom", compress="none", jobs=1, data_only=False, section=())
        path = self.folder / "outline"
        size = 0
        with self._pg_dump(replace(flags, schema_only=True)) as child, open(path, "xb", buffering=0) as file:
            for chunk in _chunks(child):
                size += file.write(chunk)
                if size > MOST_BYTES:
                    raise DamagedArchive(f"The definitions alone are larger than {in_bytes(MOST_BYTES)}.")
            self._end(child)
        contents = inspect(lambda start: _read(path, start), size)
        path.unlink()
        if contents.toc is not None and self.flags.data_only:  # none of these definitions will come
            contents = replace(contents, toc=replace(contents.toc, entries=()))
        return replace(contents, format="directory") if self.staged else contents

    def globals_sql(self) -> bytes:
        """The source server's roles. Raises `JobFailed` where it does not show them."""
        sql, warning = dump_globals(self.source, self.folder, self._environment(), self.control)
        if not sql:
            raise JobFailed(f"The missing roles cannot be created. {warning}")
        return sql

    def attach(self, load: Load, assumable: frozenset[str]) -> None:
        self._load, self._assumable = load, assumable

    def stage(self) -> None:
        """Dump into a directory first, if that was asked for; the target is not touched meanwhile."""
        if not self.staged:
            return
        self._load.phase = "dumping"
        codec = "lz4:1" if "lz4" in self.source.toolset.compressors else "none"
        flags = replace(self.flags, format="directory", compress=codec, jobs=self._jobs)
        with self._pg_dump(flags, self._directory) as child, scratch.reserve(self.folder, child.kill):
            self._end(child)
        self.count = sum(path.stat().st_size for path in self._directory.iterdir())
        with open(self._directory / "toc.dat", "rb") as file:
            self._take_list(file.read)

    def run(self, conninfo: Conninfo) -> None:
        """Into the target. Both must succeed, and either's end is the other's. Raises `PgToolsError`."""
        if self.staged:
            self._load.from_staged(conninfo, self._directory)
            shutil.rmtree(self._directory, ignore_errors=True)
            return
        flags = replace(self.flags, format="custom", compress="none", jobs=1)
        with self._pg_dump(flags) as child:
            head = _Head(_chunks(child))
            self._take_list(head.read)
            # What is held back goes on, and with it the commit, only once pg_dump has said that all is well.
            with self._tied_to(child):
                self._load.from_stream(conninfo, self._counted(head.replayed()), lambda: self._end(child))

    def snapshot(self) -> dict[str, Any]:
        """As the load's, with the share that pg_dump's tables tell."""
        told = self._load.snapshot()
        with self._lock:
            self._progress.advance(self.count)
            share, current = self._progress.share(), self._progress.current
        if self._load.phase in ("dumping", "restoring") and not (
            self.staged and self._load.phase == "restoring"
        ):
            told |= {"share": round(share, 4), "bytes": self.count}
            told["table"] = ", ".join(current) or told["table"]
        return told

    @contextmanager
    def _tied_to(self, child: Child) -> Iterator[None]:
        """The load ends with a pg_dump that fails, also while it is busy with what it has read before."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(WATCH_SECONDS):
                if child.returncode is not None:
                    if child.returncode != 0:
                        self._load.give_up()
                    return

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        except (PgToolsError, JobFailed, psycopg.Error):
            if child.returncode:
                self._end(child)  # it came first, and tells why
            raise
        finally:
            done.set()
            thread.join()

    @contextmanager
    def _pg_dump(self, flags: DumpFlags, directory: Path | None = None) -> Iterator[Child]:
        tools = self.source.toolset
        child = spawn(
            flags.argv(tools, directory),
            self._environment(),
            cwd=self.folder,
            stdout=directory is None,
            on_line=self._hear,
            secrets=self.source.conninfo.secrets,
        )
        try:
            with child, self.control.killing(child.kill):
                yield child
        finally:
            self.log = child.log

    def _environment(self) -> dict[str, str]:
        environment = self.source.conninfo.environment(self.folder, self.application_name)
        return environment | self.source.toolset.environment()

    def _end(self, child: Child) -> None:
        try:
            child.check()
        except ToolFailed as error:
            self.control.check_tool(error)
            raise
        self.control.check()

    def _take_list(self, read: Callable[[int], bytes]) -> None:
        """The dump's own list: its numbers are not the outline's."""
        load = self._load
        load.contents = replace(load.contents, toc=parse_toc(read))
        load.list_file = list_file(
            load.contents.toc, load.flags, load.mode, self._assumable, load.hold.folder, load.warnings
        )

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in self._load.counted(chunks):
            self.count += len(chunk)
            yield chunk

    def _hear(self, line: str) -> None:
        with self._lock:
            self._progress.feed(line)


class _Head:
    """Reads the beginning of a stream and gives it back."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._seen = bytearray()
        self._at = 0

    def read(self, count: int) -> bytes:
        while len(self._seen) < self._at + count and (chunk := next(self._chunks, b"")):
            self._seen += chunk
        found = bytes(self._seen[self._at : self._at + count])
        self._at += len(found)
        return found

    def replayed(self) -> Iterator[bytes]:
        yield bytes(self._seen)
        self._seen.clear()
        yield from self._chunks


def _chunks(child: Child) -> Iterator[bytes]:
    while chunk := child.stdout.read(READ_BYTES):
        yield chunk


def _read(path: Path, start: int) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while chunk := file.read(READ_BYTES):
            yield chunk
