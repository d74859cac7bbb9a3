"""Taking jobs from a queue."""

from __future__ import annotations

from jobs.queue import sql
from jobs.queue.rows import Job, as_job, rows


def claim(queue: str, slots: int, worker: str) -> list[Job]:
    """At most `slots` due jobs of `queue`, oldest due first, now held by `worker` under fresh claim ids.

    Must run outside a transaction: the claim counts from the moment this returns.
    """
    if slots <= 0:
        return []
    found = rows(sql.CLAIM, {"queue": queue, "slots": slots, "worker": worker})
    return [as_job(row, worker) for row in found]
