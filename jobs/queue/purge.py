"""Removing queue rows long finished. Their history stays."""

from __future__ import annotations

from django.conf import settings

from jobs.queue import sql
from jobs.queue.rows import execute

BATCH = 1000


def purge_finished() -> int:
    """Delete queue rows that finished more than PURGE_DAYS ago; the number deleted. An upkeep duty."""
    purged = 0
    while True:
        batch = execute(sql.PURGE, {"days": settings.PURGE_DAYS, "batch": BATCH})
        purged += batch
        if batch < BATCH:
            return purged
