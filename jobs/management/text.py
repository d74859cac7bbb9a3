"""Values in words, for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime


def printable(text: str) -> str:
    """One line without control characters: a name or error from outside must not drive the terminal."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def size(number: int | None) -> str:
    """Bytes as B, kB, MB, GB or TB (powers of 1000); "-" when unknown."""
    if number is None:
        return "-"
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def duration(seconds: float | None) -> str:
    """E.g. "0.4 s", "12 s", "3m 12s", "2h 05m"; "-" when unknown."""
    if seconds is None:
        return "-"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


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
