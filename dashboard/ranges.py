"""The Range header of RFC 9110 for one part; several parts are answered with the whole, as it allows."""

from __future__ import annotations

import re

ONE_PART = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Unsatisfiable(ValueError):
    """Nothing of the object lies in the range: 416."""


def parse(header: str, size: int) -> tuple[int, int] | None:
    """(start, end), end excluded, within `size` bytes; None: send the whole."""
    match = ONE_PART.fullmatch(header.strip())
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        return _last(int(match[2]), size)
    start = int(match[1])
    last = int(match[2]) if match[2] else max(start, size - 1)
    if last < start:
        return None  # invalid, to be ignored
    if start >= size:
        raise Unsatisfiable
    return start, min(last + 1, size)


def _last(count: int, size: int) -> tuple[int, int]:
    if count == 0 or size == 0:
        raise Unsatisfiable
    return max(size - count, 0), size
