"""How long to pause before the next try."""

from __future__ import annotations

from datetime import UTC, datetime


def pause_after(failures: int, *, first: float = 0.2, longest: float = 5.0) -> float:
    """Seconds: `first` after one failure, doubled by each further one, at most `longest`."""
    # The exponent is bounded: a float ends at 2**1023, an outage does not end at the 1024th try.
    return min(longest, first * 2.0 ** min(failures - 1, 30))


def pause_while_waiting(since: datetime, *, first: float = 5.0, longest: float = 60.0) -> float:
    """Seconds until a job that has waited since then for another one looks again: a tenth of the wait."""
    waited = (datetime.now(UTC) - since).total_seconds()
    return min(longest, max(first, waited / 10))
