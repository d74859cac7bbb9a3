"""Amounts as people read them."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def in_bytes(count: float) -> str:
    """In decimal units: 1234567 -> "1.2 MB"."""
    size, unit = float(count), 0
    while size >= 999.95 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 else f"{size:.1f} {UNITS[unit]}"


def in_time(seconds: float) -> str:
    """192 -> "3m 12s", 4000 -> "1h 6m", 0.4 -> "0.4s"."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours >= 24:
        return f"{hours // 24}d {hours % 24}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"
