"""Runs pg_dump into a sink: as a stream, or (directory format) staged on disk and sent as one tar file."""

from __future__ import annotations

import shutil
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from jobs import scratch
from jobs.pgtools.errors import DumpTimedOut, ToolFailed
from jobs.pgtools.flags import DumpFlags
from jobs.pgtools.process import Child, spawn
from jobs.pgtools.progress import DumpProgress, rate, seconds_left
from jobs.processors.artifact import READ_BYTES, Sink
from jobs.processors.base import JobFailed
from jobs.processors.control import Control
from jobs.processors.source import Source
from jobs.units import in_bytes

# What staging needs per byte of table, with room to spare; rows compress at least this well nearly always.
STAGED_RATIO = {"none": 1.1, "lz4": 0.7}
STAGED_RATIO_COMPRESSED = 0.5


@dataclass
class Dump:
    """One run of pg_dump. `snapshot` may be called from another thread meanwhile."""

    source: Source
    flags: DumpFlags
    folder: Path
    environment: dict[str, str]
    control: Control
    max_duration: int | None
    log: str = ""
    phase: str = "dumping"
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _timed_out: bool = False

    def __post_init__(self) -> None:
        codec = self.flags.compression(self.source.toolset)
        self._progress = DumpProgress(self.source.weights, codec, self.flags.jobs)
        self._seen: tuple[int, float] = (0, 0.0)

    def run(self, sink: Sink) -> None:
        """Raises `ToolFailed`, `DumpTimedOut`, `Stopped`, `StoreError` or `JobFailed`."""
        self._sink = sink
        if self.flags.format == "directory":
            self._staged(sink)
        else:
            self._streamed(sink)

    def snapshot(self) -> dict[str, Any]:
        """For the history row: share 0..1, bytes, rate in bytes/s, eta in seconds, the current table."""
        sink = self._sink
        with self._lock:
            self._progress.advance(sink.meter.bytes)
            share, current, step = self._progress.share(), self._progress.current, self._progress.step
            done, total = self._progress.tables_done, self._progress.tables_total
        count, elapsed = sink.meter.bytes, sink.meter.seconds
        (before, at), self._seen = self._seen, (count, elapsed)
        left = seconds_left(share, elapsed)
        return {
            "phase": self.phase,
            "share": round(share, 4),
            "bytes": count,
            "rate": round(rate(before, count, elapsed - at)),
            "eta": None if left is None else round(left),
            "table": ", ".join(current) or step,
            "tables_done": done,
            "tables": total,
        }

    def _streamed(self, sink: Sink) -> None:
        with self._child(None) as child:
            sink.take_all(child.stdout.readinto)  # type: ignore[attr-defined]
            self._check(child)

    def _staged(self, sink: Sink) -> None:
        self._require_space()
        directory = self.folder / "dump"
        try:
            with self._child(directory) as child, scratch.reserve(self.folder, child.kill):
                self._check(child)
        except scratch.DiskFull as error:
            raise JobFailed(self._no_space("no longer enough")) from error
        except ToolFailed as error:
            if error.returncode == -signal.SIGXFSZ or "No space left on device" in error.log:
                raise JobFailed(self._no_space("no longer enough")) from error
            raise
        self.phase = "storing"
        stream = cast(IO[bytes], sink)  # of which a tar that is only written uses nothing but write()
        with tarfile.open(fileobj=stream, mode="w|", bufsize=READ_BYTES, format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(directory.iterdir()):
                tar.add(path, arcname=path.name, recursive=False, filter=_anonymous)
                path.unlink()

    @contextmanager
    def _child(self, directory: Path | None) -> Iterator[Child]:
        child = spawn(
            self.flags.argv(self.source.toolset, directory),
            self.environment,
            cwd=self.folder,
            stdout=directory is None,
            on_line=self._hear,
            secrets=self.source.conninfo.secrets,
        )
        try:
            with child, self.control.killing(child.kill), self._limited(child.kill):
                yield child
        finally:
            self.log = child.log

    @contextmanager
    def _limited(self, kill: Callable[[], None]) -> Iterator[None]:
        """Ends the dump when it takes longer than the database allows."""
        if self.max_duration is None:
            yield
            return

        def time_out() -> None:
            self._timed_out = True
            kill()

        timer = threading.Timer(self.max_duration, time_out)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _check(self, child: Child) -> None:
        try:
            child.check()
        except ToolFailed as error:
            self.control.check()
            if self._timed_out:
                raise DumpTimedOut(
                    f"The dump took longer than the {self.max_duration} s that this database allows and was "
                    "stopped. Raise its longest duration, or back it up when the server is less busy."
                ) from error
            self.control.check_tool(error)
            raise
        self.control.check()

    def _hear(self, line: str) -> None:
        with self._lock:
            self._progress.feed(line)

    def _require_space(self) -> None:
        codec = self.flags.compression(self.source.toolset).partition(":")[0]
        needed = int(self.source.bytes * STAGED_RATIO.get(codec, STAGED_RATIO_COMPRESSED))
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise JobFailed(self._no_space(f"too little: about {in_bytes(needed)} are needed"))

    def _no_space(self, verdict: str) -> str:
        free = in_bytes(shutil.disk_usage(self.folder).free)
        return (
            f"The directory format is staged in {self.folder.parent}, where {free} are free, {verdict}. Free "
            "space there, or choose the custom format, which needs none."
        )


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
