"""How a script begins and ends, which tells of a dump that was cut off between two statements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_KEPT = 4096
_BEGINS = re.compile(rb"^-- PostgreSQL database dump\r?$", re.MULTILINE)
_ENDS = b"-- PostgreSQL database dump complete"


class Ends:
    """Passes chunks on and keeps the first and the last bytes."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._first = self._last = b""

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._first += chunk[: _KEPT - len(self._first)]
            self._last = chunk[-_KEPT:] if len(chunk) >= _KEPT else (self._last + chunk)[-_KEPT:]
            yield chunk

    @property
    def cut_off(self) -> bool:
        """Whether it begins as pg_dump begins and lacks the comment with which pg_dump ends."""
        return bool(_BEGINS.search(self._first)) and _ENDS not in self._last
