"""Amounts as people read them."""

from __future__ import annotations

UNITS = ("kB", "MB", "GB", "TB", "PB")


def in_bytes(count: float) -> str:
    """In decimal units with three digits at least: "512 B", "15.3 MB", "1.25 GB"."""
    if abs(count) < 1000:
        return f"{count:.0f} B"
    power = 1
    while abs(count) >= 999.5 * 1000**power and power < len(UNITS):
        power += 1
    value = count / 1000**power
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {UNITS[power - 1]}"


def in_time(seconds: float) -> str:
    """ "0.4s", "12s", "3m 12s", "2h 5m", "3d 4h"."""
    if seconds < 0.95:
        return f"{max(seconds, 0.0):.1f}s"
    whole = round(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days}d {hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    if minutes:
        return f"{minutes}m {whole % 60}s" if whole % 60 else f"{minutes}m"
    return f"{whole}s"
