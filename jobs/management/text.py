"""Values in words, for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from jobs.units import in_bytes, in_time


def printable(text: str) -> str:
    """One line without control characters: a name or error from outside must not drive the terminal."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def size(number: int | None) -> str:
    """Bytes; "-" when unknown."""
    return "-" if number is None else in_bytes(number)


def duration(seconds: float | None) -> str:
    return "-" if seconds is None else in_time(seconds)


def between(start: datetime | None, end: datetime | None) -> str:
    """How long something took; "-" while it has not ended."""
    return duration((end - start).total_seconds()) if start and end else "-"


def moment(value: datetime | None) -> str:
    """A time in UTC to the second; "-" when there is none."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ") if value else "-"


def columns(head: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Lines of a table, each column as wide as its longest cell; `right` names those set to the right."""
    widths = [max(len(row[place]) for row in [head, *lines]) for place in range(len(head))]
    return [
        "  ".join(
            cell.rjust(widths[place]) if place in right else cell.ljust(widths[place])
            for place, cell in enumerate(row)
        ).rstrip()
        for row in [head, *lines]
    ]
