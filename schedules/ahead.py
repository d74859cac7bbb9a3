"""Schedules whose next time is later than what their expression names next: no tick would ever notice.

A clock that was ahead for a moment has passed over all slots until then, and new rules of a time zone may
bring a slot forward.
"""

from __future__ import annotations

import logging

from jobs.queue.rows import rows
from schedules import cron, sql
from schedules.models import Schedule

log = logging.getLogger(__name__)

TIMING = ("id", "cron_expression", "timezone", "next_run_at")


def set_right() -> int:
    """Bring them back; how many. An upkeep duty. What was changed meanwhile is left alone."""
    waiting = Schedule.objects.filter(enabled=True, broken=None, next_run_at__isnull=False)
    timings = list(waiting.values(*TIMING))
    (clock,) = rows(sql.CLOCK, {})
    mended = 0
    for timing in timings:
        try:
            due = cron.next_run(timing["cron_expression"], timing["timezone"], clock["now"])
        except cron.CronError:  # the tick says so
            continue
        if due < timing["next_run_at"] and waiting.filter(**timing).update(next_run_at=due):
            log.warning(
                "schedule %s was to run at %s only: now at %s", timing["id"], timing["next_run_at"], due
            )
            mended += 1
    return mended
