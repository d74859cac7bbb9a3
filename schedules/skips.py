"""Slots that were left out are told for some months: a schedule of every minute may leave out many."""

from __future__ import annotations

from jobs.queue.rows import execute
from schedules import sql

KEEP_DAYS, BATCH = 90, 1000


def forget_old() -> int:
    """Delete the skipped slots of more than 90 days ago; how many. An upkeep duty."""
    forgotten = 0
    while True:
        batch = execute(sql.FORGET_SKIPS, {"days": KEEP_DAYS, "batch": BATCH})
        forgotten += batch
        if batch < BATCH:
            return forgotten
