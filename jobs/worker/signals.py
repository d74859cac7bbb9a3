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
        select.select([self._read, *others], [], [], max(0.0, seconds))
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


def _nothing(number: int, frame: FrameType | None) -> None:
    """Having a handler at all makes Python write the number into the pipe."""
