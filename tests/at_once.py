"""The same thing done by several at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

Result = TypeVar("Result")


def at_once(count: int, work: Callable[[], Result]) -> list[Result]:
    """What `work` returns, or raises, in threads that begin together, each with a connection of its own."""
    ready = threading.Barrier(count)

    def run(_: int) -> Result:
        try:
            ready.wait(10)
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
