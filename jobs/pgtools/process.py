"""Runs one client tool: its own process group, flat memory, nothing left behind.

On Linux the kernel kills a child when the THREAD that spawned it ends (setpriv --pdeathsig), so that no tool
outlives a killed worker. Hence the thread that calls `spawn` must be the one that stays until `wait` returns.
Elsewhere a tool ends when its pipes break or its session is terminated.
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from .errors import ToolFailed
from .hints import tool_message
from .log import BoundedLog

OnLine = Callable[[str], object]
# Time for pg_dump to cancel its query at the server after SIGTERM.
TERM_SECONDS = 3.0
DRAIN_SECONDS = 5.0
# A full pipe makes the tool wait; the kernel's usual 64 KiB are full in an instant.
PIPE_BYTES = 1 << 20
LONGEST_READ = 8192


def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: Path,
    stdin: bool = False,
    stdout: bool = True,
    on_line: OnLine | None = None,
    secrets: Sequence[str] = (),
) -> Child:
    """Start a tool with exactly this environment; `stdin` and `stdout` say which pipes the caller uses.

    `on_line` gets each line of stderr (masked, cut, without its end) in a thread of its own; should it raise,
    the tool is still drained and `wait` raises that error. `secrets` are masked in the log.
    Raises ToolFailed when the tool cannot be started.
    """
    tool = Path(argv[0]).name
    try:
        popen = subprocess.Popen(
            [*_die_with_us(), *argv],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,
        )
    except OSError as error:
        raise ToolFailed(tool, -1, "", f"{tool} could not be started: {error}") from error
    return Child(tool, popen, on_line, secrets)


class Child:
    """A running tool. As a context manager it leaves no process, thread or pipe behind."""

    def __init__(
        self, tool: str, popen: subprocess.Popen[bytes], on_line: OnLine | None, secrets: Sequence[str]
    ) -> None:
        self.tool = tool
        self.pid = popen.pid
        self._popen = popen
        self._on_line = on_line
        self._line_error: Exception | None = None
        self._log = BoundedLog(secrets)
        self._swept = False
        self._sweeping = threading.Lock()
        for pipe in (popen.stdin, popen.stdout):
            _widen(pipe)
        self._drain = threading.Thread(
            target=self._read_stderr, args=(popen.stderr,), name=f"stderr of {tool}", daemon=True
        )
        self._drain.start()

    @property
    def stdin(self) -> IO[bytes]:
        """Unbuffered; close it to tell the tool that all is said."""
        if self._popen.stdin is None:
            raise ValueError("spawned without stdin")
        return self._popen.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Unbuffered: read(n) returns what is there, at most n bytes, and b"" at the end."""
        if self._popen.stdout is None:
            raise ValueError("spawned without stdout")
        return self._popen.stdout

    @property
    def log(self) -> str:
        """The kept part of stderr: its first and last lines."""
        return self._log.text()

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal, None while it runs."""
        returncode = self._popen.poll()
        if returncode is not None:
            self._sweep()
        return returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once the log is complete; raises TimeoutExpired, or what `on_line` raised."""
        returncode = self._popen.wait(timeout)
        self._sweep()
        self._drain.join(DRAIN_SECONDS)
        if self._line_error is not None:
            raise self._line_error
        return returncode

    def check(self) -> None:
        """Wait, and raise ToolFailed unless the tool ended well."""
        returncode = self.wait()
        if returncode != 0:
            log = self.log
            raise ToolFailed(self.tool, returncode, log, tool_message(self.tool, returncode, log))

    def kill(self) -> None:
        """End the whole group: SIGTERM, so that pg_dump cancels its query at the server, then SIGKILL.

        Any number of times, from any thread; returns when the tool has ended.
        """
        if self.returncode is None:
            self._signal(signal.SIGTERM)
            deadline = time.monotonic() + TERM_SECONDS
            while self.returncode is None and time.monotonic() < deadline:
                time.sleep(0.02)
        if self.returncode is None:
            self._signal(signal.SIGKILL)
            self._popen.wait()
            self._sweep()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._drain.join(DRAIN_SECONDS)
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _sweep(self) -> None:
        """End what the tool left of its group, such as helpers of a parallel dump.

        Only once and right after it ended: later its number may be that of another group.
        """
        with self._sweeping:
            if not self._swept:
                self._swept = True
                self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _read_stderr(self, pipe: io.FileIO) -> None:
        with io.BufferedReader(pipe) as stream:
            continued = False
            while piece := stream.readline(LONGEST_READ):
                if not continued:
                    self._take(piece)
                continued = not piece.endswith(b"\n")

    def _take(self, piece: bytes) -> None:
        line = self._log.add(piece.decode("utf-8", "replace").rstrip("\r\n"))
        if self._on_line is None or self._line_error is not None:
            return
        try:
            self._on_line(line)
        except Exception as error:  # noqa: BLE001 - the edge of a thread; wait() raises it
            self._line_error = error


@cache
def _die_with_us() -> tuple[str, ...]:
    path = shutil.which("setpriv") if sys.platform == "linux" else None
    if path is None:
        return ()
    # BusyBox has a setpriv without this option.
    known = subprocess.run([path, "--pdeathsig", "KILL", "true"], capture_output=True, check=False)
    return (path, "--pdeathsig", "KILL", "--") if known.returncode == 0 else ()


def _widen(pipe: Any) -> None:
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
