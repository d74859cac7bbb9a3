"""Waiting for conditions, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def until(condition: Callable[[], Value | None], what: str, *, seconds: float = 30.0) -> Value:
    """The first truthy value of `condition`; fails naming `what` when none comes within `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain until {what}; last seen: {value!r}")
        time.sleep(0.05)
