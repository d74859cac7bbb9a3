"""The part of a tool's stderr that is kept: bounded, and without secrets."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from .mask import mask

HEAD_LINES = 200
TAIL_LINES = 300
LONGEST_LINE = 2000


class BoundedLog:
    """The first 200 and the last 300 lines added; safe to read while another thread adds."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._lock = threading.Lock()
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._count = 0

    def add(self, line: str) -> str:
        """Returns the line as it is kept: secrets masked, cut to 2000 characters."""
        line = mask(line, self._secrets)
        if len(line) > LONGEST_LINE:
            line = line[:LONGEST_LINE] + " …"
        with self._lock:
            self._count += 1
            if len(self._head) < HEAD_LINES:
                self._head.append(line)
            else:
                self._tail.append(line)
        return line

    def text(self) -> str:
        with self._lock:
            omitted = self._count - len(self._head) - len(self._tail)
            between = [f"… {omitted} lines left out …"] if omitted else []
            return "\n".join([*self._head, *between, *self._tail])
