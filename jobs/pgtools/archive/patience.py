"""How long a look at an archive may take: one that was forged can hold anybody up who reads in it.

Whoever waits says so around the look, and everything here that goes through a whole table of contents asks
in passing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .inputs import Stopped, never

_stop: ContextVar[Callable[[], bool]] = ContextVar("stop", default=never)


@contextmanager
def until(stop: Callable[[], bool]) -> Iterator[None]:
    """While inside, in this thread, looks end with `Stopped` once `stop()` is true."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def ask() -> None:
    """Raises `Stopped` when nobody waits any more."""
    if _stop.get()():
        raise Stopped("Looking into the archive was stopped.")
