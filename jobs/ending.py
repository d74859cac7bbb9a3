"""Whether this process is about to end: a long duty looks at it between two steps."""

from __future__ import annotations

import threading

_ending = threading.Event()


def begin() -> None:
    _ending.set()


def has_begun() -> bool:
    return _ending.is_set()
