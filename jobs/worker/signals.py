"""Signals as bytes in a pipe that a loop can select on.

The handlers do nothing: taking a lock in one (Event.set, logging) can deadlock the interrupted thread.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from types import FrameType


class WakePipe:
    """Wakes a loop out of its wait: by a signal, or by `wake` from any thread."""

    def __init__(self, *signals: int) -> None:
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
            os.set_inheritable(end, False)
        self._signals = signals
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in signals:
            signal.signal(number, _nothing)

    def wake(self) -> None:
        try:
            os.write(self._write, b"\0")
        except BlockingIOError:
            return  # full of bytes, so the loop wakes anyway

    def wait(self, seconds: float, others: Iterable[int] = ()) -> list[int]:
        """Sleep until woken, one of the `others` is readable, or the time is up; the signals that came."""
        waiting = select.poll()  # select() knows no descriptor above 1023, which a busy process may have
        for descriptor in (self._read, *others):
            waiting.register(descriptor, select.POLLIN)
        waiting.poll(max(0.0, seconds) * 1000)
        try:
            received = os.read(self._read, 4096)
        except BlockingIOError:
            return []
        return [number for number in received if number in self._signals]

    def close(self) -> None:
        """Give the signals and the pipe up, as a forked child does with its parent's."""
        signal.set_wakeup_fd(-1)
        for number in self._signals:
            signal.signal(number, signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)


def leave_to_supervisor() -> None:
    """Ctrl-C and the closing of a terminal reach the whole group; the supervisor sends SIGTERM then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def wanted(number: int) -> list[int]:
    """The signal, unless whoever started this process had it ignored (nohup)."""
    return [] if signal.getsignal(number) is signal.SIG_IGN else [number]


def _nothing(number: int, frame: FrameType | None) -> None:
    """Having a handler at all makes Python write the number into the pipe."""
