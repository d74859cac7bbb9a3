"""What databases are called while they are being restored and after they were replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count
from uuid import UUID

LONGEST = 63  # bytes of a name in PostgreSQL (NAMEDATALEN - 1)
PREFIX = "pgbr_"


def problem_with(name: str) -> str:
    """Why a database cannot be called so, as a sentence; "" where it can."""
    if name and name.isprintable() and len(name.encode()) <= LONGEST:
        return ""
    return f"A database's name has 1 to {LONGEST} bytes of printable characters."


def temporary(job_id: UUID, claim_id: UUID) -> str:
    """Of a database that is being restored: `leftovers` finds it by its job, whoever left it."""
    return f"{temporary_prefix(job_id)}{claim_id.hex[:8]}"


def temporary_prefix(job_id: UUID) -> str:
    return f"{PREFIX}{job_id.hex}_"


def aside(name: str, what: str, moment: datetime, is_taken: Callable[[str], bool]) -> str:
    """ "shop_before_20260102_030405": `what` is "before" (replaced) or "undone". Long names are cut; the
    second one within a second ends in "_2"."""
    tries = (_aside(name, f"_{what}_{moment:%Y%m%d_%H%M%S}{again}") for again in _agains())
    return next(free for free in tries if not is_taken(free))


def _agains() -> Iterator[str]:
    yield ""
    yield from (f"_{number}" for number in count(2))


def _aside(name: str, suffix: str) -> str:
    return name.encode()[: LONGEST - len(suffix)].decode(errors="ignore") + suffix
