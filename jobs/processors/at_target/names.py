"""What databases are called while they are being restored and after they were replaced."""

from __future__ import annotations

from datetime import datetime
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


def aside(name: str, what: str, moment: datetime) -> str:
    """ "shop_before_20260102_030405": `what` is "before" (replaced) or "undone". Long names are cut."""
    suffix = f"_{what}_{moment:%Y%m%d_%H%M%S}"
    kept = name.encode()[: LONGEST - len(suffix)].decode(errors="ignore")
    return kept + suffix
